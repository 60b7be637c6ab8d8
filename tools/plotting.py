"""What the figures of plot.py are made of: numbers as people read them, scales, panels, and recorded runs."""
import html
import json
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, GAP = 340, 230, 78, 22, 34, 46, 10
# Colour in light, colour in dark, dashes, marker. Dashes and markers tell lines apart without colour.
LINES = [("#2563c4", "#6ea8ff", "", "circle"), ("#c2410c", "#fb9a5b", "6 3", "square"),
         ("#0f7b6c", "#4fd1b5", "2 3", "triangle"), ("#8b3fb3", "#d49af2", "8 3 2 3", "diamond"),
         ("#6b6b00", "#d6d25a", "", "square"), ("#a3134f", "#ff8ab5", "4 4", "circle"),
         ("#475569", "#a9b7c9", "1 4", "diamond"), ("#0369a1", "#7dd3fc", "10 4", "triangle")]


class Trouble(Exception):
    """What is wrong, in one line."""


# ---- numbers as people read them ----------------------------------------------------------------

def scaled(value, units, step=1000):
    for unit in units[:-1]:
        if abs(value) < step:
            return f"{value:.3g} {unit}".rstrip()
        value /= step
    return f"{value:.4g} {units[-1]}".rstrip()


def time_text(us):
    return "0" if us == 0 else f"{us * 1e3:.3g} ns" if us < 1 else scaled(us, ["us", "ms", "s"])


def bytes_text(n):
    return "0" if n == 0 else scaled(n, ["B", "KiB", "MiB", "GiB"], 1024)


def megabytes_text(n):
    return "0" if n == 0 else scaled(n / 1e6, ["MB", "GB"])


def count_text(n):
    return f"{n:,.0f}" if n == int(n) else f"{n:.3g}"


def rate_text(n):
    return "0" if n == 0 else scaled(n, ["", "k", "M", "G"])


def factor_text(n):
    return f"{n:.3g}x"


# ---- scales -------------------------------------------------------------------------------------

class Linear:
    def __init__(self, low, high):
        raw = (high - low or 1) / 4
        unit = 10 ** math.floor(math.log10(raw))
        self.step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= raw * 0.999)
        self.low = math.floor(low / self.step) * self.step
        self.high = math.ceil(high / self.step - 1e-9) * self.step
        if self.high == self.low:
            self.high += self.step

    def at(self, value):
        return (value - self.low) / (self.high - self.low)

    def ticks(self):
        return [self.low + i * self.step for i in range(round((self.high - self.low) / self.step) + 1)]


class Log:
    """Ticks at powers of `base`, or where `places` says."""

    def __init__(self, low, high, base=10, places=None):
        if low <= 0:
            raise Trouble(f"{low} cannot be drawn on a logarithmic axis")
        self.base, self.places = base, places
        around = (lambda v, f: f(round(math.log(v, base), 9))) if not places else None
        self.low = base ** around(low, math.floor) if around else low
        self.high = base ** around(high, math.ceil) if around else high
        if self.low == self.high:
            self.high *= base

    def at(self, value):
        return math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self):
        if self.places:
            return self.places
        first, last = (round(math.log(v, self.base)) for v in (self.low, self.high))
        step = max(1, math.ceil((last - first) / 6))
        return [self.base ** i for i in range(first, last + 1, step)]


# ---- drawing ------------------------------------------------------------------------------------

def marker(kind, x, y, line):
    shapes = {"square": f"M{x - 3:.1f} {y - 3:.1f}h6v6h-6z", "triangle": f"M{x:.1f} {y - 4:.1f}l4 7h-8z",
              "diamond": f"M{x:.1f} {y - 4:.1f}l4 4l-4 4l-4 -4z"}
    if kind == "circle":
        return f'<circle class="f{line}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
    return f'<path class="f{line}" d="{shapes[kind]}"/>'


def text(x, y, words, anchor="middle", kind="t", turn=False):
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}>{html.escape(words)}</text>'


class Panel:
    """One pair of axes. `lines`: {label: [(x, y), ...]}; a label has the same look in all panels of a figure."""

    def __init__(self, title, x_label, y_label, lines, x_text=count_text, y_text=time_text, x_log=2, y_log=10,
                 x_places=None, bounds=None):
        self.title, self.x_label, self.y_label = title, x_label, y_label
        self.lines = {label: sorted(points) for label, points in lines.items() if points}
        self.x_text, self.y_text = x_text, y_text
        xs = [x for points in self.lines.values() for x, _ in points]
        ys = [y for points in self.lines.values() for _, y in points] + list(bounds or [])
        if not xs:
            raise Trouble(f"no valid rows for '{title}'")
        self.x = Log(min(xs), max(xs), x_log, x_places) if x_log else Linear(min(0, *xs), max(xs))
        self.y = Log(min(ys), max(ys), y_log) if y_log else Linear(min(0, *ys), max(ys))

    def draw(self, left, top, order):
        right, bottom = left + WIDTH, top + HEIGHT
        px = lambda v: left + self.x.at(v) * WIDTH
        py = lambda v: bottom - self.y.at(v) * HEIGHT
        out = [text(left, top - 10, self.title, "start", "h")]
        for v in self.y.ticks():
            out.append(f'<path class="g" d="M{left} {py(v):.1f}H{right}"/>')
            out.append(text(left - 6, py(v) + 4, self.y_text(v), "end"))
        for v in self.x.ticks():
            out.append(f'<path class="a" d="M{px(v):.1f} {bottom}v4"/>')
            out.append(text(px(v), bottom + 17, self.x_text(v)))
        out.append(f'<path class="a" d="M{left} {top}V{bottom}H{right}"/>')
        out.append(text((left + right) / 2, bottom + 36, self.x_label))
        out.append(text(left - 62, (top + bottom) / 2, self.y_label, turn=True))
        for label, points in self.lines.items():
            line = order.index(label) % len(LINES)
            path = " ".join(f"{'L' if i else 'M'}{px(x):.1f} {py(y):.1f}" for i, (x, y) in enumerate(points))
            out.append(f'<path class="l{line}" d="{path}"/>')
            if len(points) <= 16:
                out += [marker(LINES[line][3], px(x), py(y), line) for x, y in points]
        return out


class Bars:
    """What was done when, on tracks. `tracks`: {label: [(begin, end, what), ...]}, times in us. Two panels wide."""

    def __init__(self, title, tracks):
        self.title, self.tracks = title, tracks
        self.lines = {what: [] for bars in tracks.values() for _, _, what in bars}
        self.x = Linear(0, max(end for bars in tracks.values() for _, end, _ in bars))

    def draw(self, left, top, order):
        width, bottom = 2 * WIDTH + LEFT + RIGHT + GAP, top + HEIGHT
        px = lambda v: left + self.x.at(v) * width
        step = HEIGHT / len(self.tracks)
        out = [text(left, top - 10, self.title, "start", "h")]
        for v in self.x.ticks():
            out.append(f'<path class="g" d="M{px(v):.1f} {top}V{bottom}"/>')
            out.append(text(px(v), bottom + 17, time_text(v)))
        out.append(f'<path class="a" d="M{left} {top}V{bottom}H{left + width}"/>')
        for i, (label, bars) in enumerate(self.tracks.items()):
            y = top + i * step
            out.append(text(left + 6, y + 16, label, "start"))
            for begin, end, what in bars:
                out.append(f'<rect class="f{order.index(what) % len(LINES)}" x="{px(begin):.1f}" y="{y + 24:.1f}" '
                           f'width="{max(px(end) - px(begin), 1):.1f}" height="{step - 30:.1f}"/>')
        return out


class Ranks:
    """One bar for each of some things. `bars`: [(label, value, what), ...], from the best to the worst. Two panels wide."""

    def __init__(self, title, bars, value_text=time_text):
        self.title, self.bars, self.value_text = title, bars, value_text
        self.lines = {what: [] for _, _, what in bars}

    def draw(self, left, top, order):
        labels, numbers = 7.0 * max(len(label) for label, _, _ in self.bars), 60
        left += labels - LEFT + 16
        width = 2 * WIDTH + LEFT + RIGHT + GAP - labels + LEFT - 16 - numbers
        most, step = max(value for _, value, _ in self.bars), HEIGHT / len(self.bars)
        out = [text(left, top - 10, self.title, "start", "h")] if self.title else []
        for i, (label, value, what) in enumerate(self.bars):
            y, long = top + i * step, max(value / most * width, 1)
            out.append(text(left - 8, y + step / 2 + 4, label, "end"))
            out.append(f'<rect class="f{order.index(what) % len(LINES)}" x="{left:.1f}" y="{y + 3:.1f}" '
                       f'width="{long:.1f}" height="{step - 6:.1f}"/>')
            out.append(text(left + long + 6, y + step / 2 + 4, self.value_text(value), "start"))
        out.append(f'<path class="a" d="M{left:.1f} {top}V{top + HEIGHT}"/>')
        return out


def figure(title, panels, columns):
    """All panels, a legend above. The document, as text."""
    if not panels:
        raise Trouble(f"no valid rows for '{title}'")
    order = list(dict.fromkeys(label for p in panels for label in p.lines))
    cell = LEFT + WIDTH + RIGHT + GAP
    width = columns * cell
    entries, x, y = [], 16.0, 50.0
    for i, label in enumerate(order):
        needed = 48 + 7.3 * len(label)
        if x + needed > width and x > 16:
            x, y = 16.0, y + 20
        line = i % len(LINES)
        entries.append(f'<path class="l{line}" d="M{x:.1f} {y - 4:.1f}h26"/>')
        entries.append(marker(LINES[line][3], x + 13, y - 4, line))
        entries.append(text(x + 32, y, label, "start"))
        x += needed
    rows = math.ceil(len(panels) / columns)
    begin = y + 14 + TOP
    height = begin + rows * (HEIGHT + BOTTOM + TOP) - TOP + 8
    light = [f".l{i}{{stroke:{c};stroke-dasharray:{d or 'none'}}}.f{i}{{fill:{c}}}" for i, (c, _, d, _) in enumerate(LINES)]
    dark = [f".l{i}{{stroke:{c}}}.f{i}{{fill:{c}}}" for i, (_, c, _, _) in enumerate(LINES)]
    fills = ",".join(f".l{i}" for i in range(len(LINES)))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" width="{width}" '
           f'height="{height:.0f}" role="img">', f"<title>{html.escape(title)}</title>", "<style>",
           "text{font:12px system-ui,sans-serif;fill:#333}.h{font-weight:600;fill:#111}.b{fill:#fff}",
           f"{fills}{{fill:none;stroke-width:2}}.g{{stroke:#ddd;fill:none}}.a{{stroke:#666;fill:none}}", *light,
           "@media(prefers-color-scheme:dark){text{fill:#ccc}.h{fill:#f2f2f2}.b{fill:#15181c}.g{stroke:#333a42}"
           ".a{stroke:#8a929c}" + "".join(dark) + "}", "</style>",
           f'<rect class="b" width="{width}" height="{height:.0f}"/>', text(16, 24, title, "start", "h"), *entries]
    for i, p in enumerate(panels):
        out += p.draw(i % columns * cell + LEFT, begin + i // columns * (HEIGHT + BOTTOM + TOP), order)
    return "\n".join(out) + "\n</svg>\n"


# ---- recorded runs ------------------------------------------------------------------------------

def read(path):
    """The run at `path`, and the newer rows of runs of its parts, which are recorded beside it: NAME-2.json."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        parts = [json.loads(part.read_text(encoding="utf-8")) for part in path.parent.glob(f"{path.stem}-[0-9].json")]
        rows = {row["name"]: row for run in [document] + sorted(parts, key=lambda run: run["date"])
                for row in run["rows"]}
        return document, [row for row in rows.values() if row["valid"] is True]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise Trouble(f"{path}: it is no recorded run ({type(e).__name__}: {str(e).splitlines()[0]}); record one "
                      f"with `grosr bench NAME --json {path}`") from None


def read_trace(path):
    """The trace at `path`: its document, and what it says was done."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return document, [e for e in document["traceEvents"] if e["ph"] == "X"]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise Trouble(f"{path}: it is no trace ({type(e).__name__}: {str(e).splitlines()[0]}); record one with "
                      f"`grosr graph bfs GRAPH --trace {path}`") from None


def points(rows, x, y, **wanted):
    return [(row[x], row[y]) for row in rows
            if x in row and y in row and all(row.get(key) == value for key, value in wanted.items())]


def named(rows, begin, end=""):
    return [row for row in rows if row["name"].startswith(begin) and end in row["name"]]


def on(document):
    return f"{document['device_description']}, {document['date'][:10]}"
