"""The figures of plot.py on dataflow: works by several ways, shares of graphs, a second device, and frames of cameras."""
import math
import re

from plotting import (HEIGHT, LEFT, LINES, WIDTH, Linear, Log, Panel, Trouble, factor_text, figure, marker,
                      named, on, rate_text, text, time_text)

# ---- panels with a line of text for each of some things -----------------------------------------


class Named:
    """Things below each other, with their names on the left. A name may have two lines. One panel wide."""

    def __init__(self, title, names, lines):
        self.title, self.names = title, names
        self.lines = {label: [] for label in lines}
        self.room = 6.9 * max(len(part) for name in names for part in name.split("\n")) + 10

    def frame(self, left, top, value_text):
        """Names and the axis, whose scale is self.x. What is drawn, the places of values, and those of things."""
        begin, bottom = left + max(self.room - LEFT + 8, 0), top + HEIGHT
        width, step = left + WIDTH - begin, HEIGHT / len(self.names)
        px = lambda v: begin + self.x.at(v) * width
        out = [text(left - LEFT + 16, top - 10, self.title, "start", "h")]
        for v in self.x.ticks():
            out.append(f'<path class="g" d="M{px(v):.1f} {top}V{bottom}"/>')
            out.append(text(px(v), bottom + 17, value_text(v)))
        middles = [top + (i + 0.5) * step for i in range(len(self.names))]
        for name, y in zip(self.names, middles):
            parts = name.split("\n")
            for i, part in enumerate(parts):
                out.append(text(begin - 8, y + 4 + 14 * (i - (len(parts) - 1) / 2), part, "end"))
        out.append(f'<path class="a" d="M{begin:.1f} {top}V{bottom}H{left + WIDTH}"/>')
        return out, px, middles, (begin + left + WIDTH) / 2


class Dots(Named):
    """A marker for each of some ways, on a logarithmic axis, and a line where `at` says. `things`: {name: {way: value}}."""

    def __init__(self, title, x_label, things, value_text, bounds=None, at=None):
        super().__init__(title, list(things), dict.fromkeys(way for of in things.values() for way in of))
        self.x_label, self.things, self.value_text, self.line_at = x_label, things, value_text, at
        values = [v for of in things.values() for v in of.values()] + list(bounds or []) + ([at] if at else [])
        if not values:
            raise Trouble(f"no valid rows for '{title}'")
        self.x = Log(0.87 * min(values), 1.15 * max(values), places=[1])
        self.x.places = places(self.x.low, self.x.high)

    def draw(self, left, top, order):
        out, px, middles, middle = self.frame(left, top, self.value_text)
        out.append(text(middle, top + HEIGHT + 36, self.x_label))
        if self.line_at:
            out.append(f'<path class="a" d="M{px(self.line_at):.1f} {top}V{top + HEIGHT}"/>')
        for of, y in zip(self.things.values(), middles):
            if of:
                out.append(f'<path class="g" d="M{px(min(of.values())):.1f} {y:.1f}H{px(max(of.values())):.1f}"/>')
            for i, (way, v) in enumerate(of.items()):  # not quite on one line, so that none hides another
                line = order.index(way) % len(LINES)
                out.append(marker(LINES[line][3], px(v), y + 5 * (i - (len(of) - 1) / 2), line))
        return out


class Stacks(Named):
    """A bar of parts for each of some things, and the sum behind it. `things`: {name: {part: value}}."""

    def __init__(self, title, x_label, things, value_text):
        super().__init__(title, list(things), dict.fromkeys(part for of in things.values() for part in of))
        self.x_label, self.things, self.value_text = x_label, things, value_text
        self.x = Linear(0, max(1.12 * sum(of.values()) for of in things.values()) or 1)

    def draw(self, left, top, order):
        out, px, middles, middle = self.frame(left, top, self.value_text)
        out.append(text(middle, top + HEIGHT + 36, self.x_label))
        thick = min(22, HEIGHT / len(self.names) - 6)
        for of, y in zip(self.things.values(), middles):
            end = 0
            for part, v in of.items():
                out.append(f'<rect class="f{order.index(part) % len(LINES)}" x="{px(end):.1f}" y="{y - thick / 2:.1f}" '
                           f'width="{px(end + v) - px(end):.1f}" height="{thick:.1f}"/>')
                end += v
            out.append(text(px(end) + 5, y + 4, self.value_text(end), "start"))
        return out


def places(low, high):
    """1, 2, 5, 10 and so on between `low` and `high`; fewer where there would be many."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for of_ten in ((1, 2, 5), (1, 3), (1,)):
        between = [v for v in (float(f"{k}e{e}") for e in decades for k in of_ten) if low <= v <= high]
        if len(between) <= 6:
            break
    return between


def percent_text(n):
    return f"{n:,.0f}%" if n >= 100 else f"{n:.3g}%"


# ---- the figures --------------------------------------------------------------------------------

def composition(runs):
    document, rows = runs["composition"]
    ways = ("modular-1", "modular", "best-by-hand", "flow")
    kinds = {}
    for row in rows:
        if "by-hand_us" in row:
            faster = {way: row["by-hand_us"] / row[way + "_us"] for way in ways if way + "_us" in row}
            kind, work = row["name"].split(", ", 1)
            kinds.setdefault(kind, {})[re.sub(r"\d{5,}", lambda n: f"{int(n[0]):,}", work)] = faster
    groups = []  # works of a few kinds; those of a kind stay together
    most = max(map(len, kinds.values()), default=0)
    for kind in kinds:
        if groups and sum(len(kinds[k]) for k in groups[-1] + [kind]) <= most:
            groups[-1].append(kind)
        else:
            groups.append([kind])
    all_values = [v for works in kinds.values() for of in works.values() for v in of.values()]
    panels = []
    for group in groups:
        works = {work if len(group) == 1 else f"{kind}\n{work}": of for kind in group for work, of in kinds[kind].items()}
        panels.append(Dots(", ".join(group), "rate, by-hand = 1x", works, factor_text, all_values, 1))
    return figure(f"Works of several operations, beside code by hand with one stream ({on(document)})", panels, 2)


def priorities(runs):
    document, rows = runs["policies"]
    by_priorities = {}
    for row in rows:
        policy, _, which = row["name"].partition(": four graphs of ")
        if which:
            by_priorities.setdefault(which.split("priorities ")[1], {})[policy] = row

    def values(row, key):
        found = {re.fullmatch(rf"priority_(\d+)_{key}", k): v for k, v in row.items()}
        return [(int(m.group(1)), v) for m, v in found.items() if m]

    panels = []
    for which, policies in by_priorities.items():
        lines = lambda key: {policy: values(row, key) for policy, row in policies.items()}
        for y_label, key, y_text in (("share of the device", "percent", percent_text),
                                     ("graphs a second", "graphs_per_s", rate_text)):
            panels.append(Panel(f"four graphs of priorities {which}", "priority of the graph", y_label, lines(key),
                                y_text=y_text, x_log=None, y_log=None))
    return figure(f"Four graphs that keep a device busy, by policy ({on(document)})", panels, 2)


def second_device(runs):
    document, rows = runs["policies"]
    sped_up, moved, where = {}, {}, {}
    for row in rows:
        m = re.fullmatch(r"(\w+): depth (\d+), breadth (\d+), on (.*)", row["name"])
        if m:
            sped_up.setdefault(m[1], []).append((int(m[3]), row["speedup_x"]))
            moved.setdefault(m[1], []).append((int(m[3]), row["moves_percent"]))
            where[f"depth {m[2]}, on {m[4]}"] = True
    breadths = sorted({x for line in sped_up.values() for x, _ in line})
    looks = {"x_places": breadths if len(breadths) > 1 else None, "y_log": None}
    title = "; ".join(where)
    return figure(f"Rectangles of matrix operations on two devices, by policy ({on(document)})", [
        Panel(title, "breadth of the rectangle", "times as fast as one device", sped_up, y_text=factor_text,
              bounds=[0, 2], **looks),
        Panel(title, "breadth of the rectangle", "inputs from the other device", moved, y_text=percent_text,
              **looks)], 2)


def gesture(runs):
    document, rows = runs["gesture"]
    courses = list(dict.fromkeys(row["name"].split(", ", 1)[1] for row in rows))
    panels = []
    for course in courses:
        mine = {f"{row['name'].split(', ')[0]}\n{row['frames_per_s']:,.0f} frames/s": row
                for row in named(rows, "", ", " + course)}
        of = lambda keys: {way: {label: row[key] for label, key in keys.items() if key in row} for way, row in mine.items()}
        panels.append(Stacks(f"{course}: processor time", "100% is one processor",
                             of({"user": "user_percent", "system": "system_percent"}), percent_text))
        panels.append(Dots(f"{course}: latency of a frame", "time that so many frames take at most",
                           of({"half of the frames": "p50_us", "99 of 100 frames": "p99_us"}), time_text))
    return figure(f"Frames of two cameras become events, in several ways ({on(document)})", panels, 2)


FIGURES = {"composition": (composition, "composition"), "priorities": (priorities, "policies"),
           "second-device": (second_device, "policies"), "gesture": (gesture, "gesture")}
