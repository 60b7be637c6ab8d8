#include "flow/stretch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "flow/resident_stretch.hpp"
#include "grosr/simt/timeline.hpp"

namespace grosr::flow {

stretch::stretch() = default;
stretch::~stretch() = default;

std::size_t stretch::bytes() const {
  return sets * std::accumulate(buffer_bytes.begin(), buffer_bytes.end(), std::size_t{0});
}

void stretch::prepare(const std::vector<device>& devices) {
  devices_.clear();
  at_border_.clear();
  residents_.reset();
  if (is_resident()) {
    if (!devices.empty())
      residents_ =
          std::make_unique<resident_stretch>(members, buffer_bytes, devices.front(), outside_ports);
    return;
  }
  const auto is_outside = [](const auto& p) { return p.outside; };
  for (unsigned i = 0; i < members.size(); ++i)
    if (std::any_of(members[i].places.begin(), members[i].places.end(), is_outside) ||
        std::any_of(members[i].copied_from.begin(), members[i].copied_from.end(),
                    [&](const auto& p) { return p && is_outside(*p); }))
      at_border_.push_back(i);
  std::deque<on_device> made;
  for (const device& d : devices) {
    made.emplace_back(d);
    for (unsigned i = 0; i < sets; ++i) {
      set& inside = made.back().sets.emplace_back();
      for (const std::size_t n : buffer_bytes)
        inside.buffers.emplace_back(d, simt::space::device, n);
    }
  }
  devices_ = std::move(made);
}

void stretch::put(const member& m, const set& inside, const std::vector<void*>& outside,
                  detail::invocation& scratch, simt::stream& s) const {
  const auto at = [&](const place& p) -> void* {
    return p.outside ? outside[p.number] : const_cast<std::byte*>(inside.buffers[p.number].data());
  };
  scratch.stream = &s;
  scratch.ports.assign(m.places.size(), {});
  for (std::size_t i = 0; i < m.places.size(); ++i) {
    scratch.ports[i] = {at(m.places[i]), m.shapes[i].count(), &m.shapes[i]};
    if (m.copied_from[i])
      simt::copy_bytes(s, scratch.ports[i].data, at(*m.copied_from[i]), m.shapes[i].size_bytes());
  }
  try {
    m.function(scratch);
  } catch (const std::exception& e) {
    throw error(errc::task_failed, fmt::format("node '{}' of it: {}", m.name, e.what()));
  } catch (...) {
    throw error(errc::task_failed,
                fmt::format("node '{}' of it: an exception that is no std::exception", m.name));
  }
  for (std::size_t i = 0; i < m.places.size(); ++i)
    if (scratch.ports[i].count != m.shapes[i].count())
      throw error(
          errc::invalid_option,
          fmt::format("node '{}' of it: {} elements were set for a block of {}, which has all "
                      "of them; make the template variable where there may be fewer",
                      m.name, scratch.ports[i].count, m.shapes[i].text()));
}

/// Sees to it that the last graph of a set looks at these blocks.
bool stretch::find_graph(on_device& d, set& inside, const std::vector<void*>& outside) {
  auto& graphs = inside.graphs;
  const auto same = std::find_if(graphs.begin(), graphs.end(),
                                 [&](const captured& c) { return c.made_for == outside; });
  // Not every place is worth one: programs may never come back to it.
  const bool makes = graphs.size() < inside.most && (graphs.empty() || inside.changes >= 16);
  if (same == graphs.end() && makes) {
    inside.changes = 0;
    if (make_graph(d, inside, outside)) return true;
    inside.most = graphs.size();  // there is no memory for another one
  }
  if (graphs.empty()) return false;
  // Else the one whose last use is longest ago.
  std::rotate(same == graphs.end() ? graphs.begin() : same,
              std::next(same == graphs.end() ? graphs.begin() : same), graphs.end());
  if (graphs.back().made_for == outside) return true;
  ++inside.changes;
  return change_graph(inside, graphs.back(), outside);
}

bool stretch::make_graph(on_device& d, set& inside, const std::vector<void*>& outside) {
  auto graph = simt::stream_graph::make(d.where);
  if (!graph) return false;
  d.tried = true;
  detail::invocation scratch;
  for (const member& m : members)
    if (!graph->add(m.after, [&](simt::stream& s) { put(m, inside, outside, scratch, s); }))
      return false;
  if (!graph->finish()) return false;
  inside.graphs.push_back({std::move(graph), outside});
  return true;
}

/// The parts that look at other blocks than in the run before.
bool stretch::change_graph(const set& inside, captured& c, const std::vector<void*>& outside) {
  detail::invocation scratch;
  const auto moved = [&](const place& p) {
    return p.outside && c.made_for[p.number] != outside[p.number];
  };
  std::vector<unsigned> changed;
  for (const unsigned i : at_border_) {
    const member& m = members[i];
    if (std::any_of(m.places.begin(), m.places.end(), moved) ||
        std::any_of(m.copied_from.begin(), m.copied_from.end(),
                    [&](const auto& p) { return p && moved(*p); }))
      changed.push_back(i);
  }
  const bool whole = c.graph->replace(
      changed, [&](unsigned i, simt::stream& s) { put(members[i], inside, outside, scratch, s); });
  if (whole) c.made_for = outside;
  return whole;
}

void stretch::run(detail::invocation& v) {
  if (residents_) {
    residents_->run(v);
    return;
  }
  const device where = v.stream->where();
  const auto found = std::find_if(devices_.begin(), devices_.end(),
                                  [&](const on_device& d) { return d.where == where; });
  on_device& d = *found;
  set& inside = d.sets[v.number % sets];
  std::vector<void*> outside;
  for (const auto& p : v.ports) outside.push_back(p.data);
  if (d.captures) {
    try {
      if (find_graph(d, inside, outside)) {
        inside.graphs.back().graph->launch(*v.stream);
        return;
      }
    } catch (...) {  // it says why when it is called below
    }
    const bool others_have = std::any_of(d.sets.begin(), d.sets.end(), [&](const set& s) {
      return &s != &inside && !s.graphs.empty();
    });
    if (!inside.graphs.empty() || !others_have) {
      // What one run puts into a stream is not always the same, or cannot be in a graph.
      d.captures = false;
      if (d.tried) fell_back_ = true;
      for (set& s : d.sets) s.graphs.clear();
    }
  }
  detail::invocation scratch;
  for (const member& m : members) put(m, inside, outside, scratch, *v.stream);
}

}  // namespace grosr::flow
