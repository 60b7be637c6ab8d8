// Finds the stretches of a graph, and makes a node of each.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <utility>

#include "flow/graph_core.hpp"
#include "flow/stretch.hpp"

namespace grosr::flow {
namespace {

constexpr std::size_t most_members = 1024;

/// Whether a node does the same with all blocks, when all its inputs are there, on devices.
bool can_be_in_one(const node_core& n) {
  if (n.resident) return true;
  if (!n.on_device || n.on_host || !n.same_always) return false;
  bool any_input = false;
  for (const port_core& p : n.ports) {
    if (p.is.shape.layout() != block_template::records::fixed || p.is.sticky || p.is.deadline)
      return false;
    any_input = any_input || p.is.way != direction::out;
  }
  return any_input;
}

/// Sets of nodes. Invariant: what comes out of a set needs all that goes into it, so that it comes
/// when it would come out of nodes that run by themselves; whoever gives what goes in may wait for
/// it.
class node_sets {
 public:
  /// Without `merges`, each node by itself.
  node_sets(const graph_core& g, const std::vector<unsigned>& order, bool merges)
      : g_(g), of_(g.nodes.size()), rank_(g.nodes.size(), 0), member_(g.nodes.size(), 0) {
    for (unsigned i = 0; i < order.size(); ++i) rank_[order[i]] = i;
    for (unsigned n = 0; n < of_.size(); ++n) {
      of_[n] = n;
      members_.push_back({n});
    }
    if (!merges) return;
    std::vector<bool> can(of_.size(), false);
    for (const unsigned n : order) can[n] = can_be_in_one(g.nodes[n]);
    std::vector<edge> edges;
    for (const unsigned n : order)
      for (const port_core& p : g.nodes[n].ports) {
        if (p.is.way == direction::out || p.in == block_channel::outside) continue;
        const unsigned from = g.channels[p.in].from;
        if (can[n] && from != block_channel::outside && can[from] &&
            is_resident(from) == is_resident(n))
          edges.push_back({from, n});
      }
    merge_whole(order, edges);
    for (const edge& e : edges) try_merge(of_[e.from], of_[e.to]);
  }

  /// The sets of several nodes or of a resident one, each in an order in which they can run.
  std::vector<std::vector<unsigned>> all() const {
    std::vector<std::vector<unsigned>> found;
    for (const auto& m : members_)
      if (m.size() > 1 || (m.size() == 1 && is_resident(m.front()))) found.push_back(m);
    return found;
  }

 private:
  struct edge {
    unsigned from, to;
  };

  bool is_resident(unsigned n) const { return static_cast<bool>(g_.nodes[n].resident); }

  /// All nodes that hang together, where they can be one. Two of them may not: in a stencil, what
  /// comes out of each node goes to others with inputs of their own.
  void merge_whole(const std::vector<unsigned>& order, const std::vector<edge>& edges) {
    std::vector<unsigned> part(of_);  // by one of its nodes
    const auto part_of = [&](unsigned n) {
      while (part[n] != n) n = part[n] = part[part[n]];
      return n;
    };
    for (const edge& e : edges) part[part_of(e.from)] = part_of(e.to);
    std::map<unsigned, std::vector<unsigned>> parts;
    for (const unsigned n : order) parts[part_of(n)].push_back(n);
    for (auto& [any, set] : parts) {
      if (set.size() == 1 || set.size() > most_members || !can_be_one(set)) continue;
      for (const unsigned n : set) {
        of_[n] = set.front();
        members_[n].clear();
      }
      members_[set.front()] = set;
    }
  }

  /// In which no block has to be, ever.
  static bool is_plain(const block_channel& c) {
    return c.options.full == when_full::block && c.options.capacity == 1 && c.blocks.empty();
  }

  void try_merge(unsigned a, unsigned b) {
    if (a == b || members_[a].size() + members_[b].size() > most_members) return;
    std::vector<unsigned> both;
    std::merge(members_[a].begin(), members_[a].end(), members_[b].begin(), members_[b].end(),
               std::back_inserter(both),
               [&](unsigned x, unsigned y) { return rank_[x] < rank_[y]; });
    if (!can_be_one(both)) return;
    for (const unsigned n : both) of_[n] = a;
    members_[a] = std::move(both);
    members_[b].clear();
  }

  bool can_be_one(const std::vector<unsigned>& set) {
    for (unsigned i = 0; i < set.size(); ++i) member_[set[i]] = i + 1;
    const bool can = are_all_needed(set);
    for (const unsigned n : set) member_[n] = 0;
    return can;
  }

  bool are_all_needed(const std::vector<unsigned>& set) const {
    const auto is_inside = [&](unsigned n) {
      return n != block_channel::outside && member_[n] != 0;
    };
    // Members that get something from outside have a bit each, and so has a source that gives to
    // several; which of them each member needs.
    std::size_t gets = 0;
    std::vector<std::vector<std::size_t>> bits(set.size());
    std::map<unsigned, std::size_t> sources;
    const auto comes_in = [&](const port_core& p) {
      return p.is.way != direction::out && !is_inside(g_.channels[p.in].from);
    };
    for (unsigned i = 0; i < set.size(); ++i) {
      bool gets_own = false;
      for (const port_core& p : g_.nodes[set[i]].ports) {
        if (!comes_in(p)) continue;
        const unsigned source = g_.channels[p.in].first_of_source;
        if (source == block_channel::outside || g_.channels[source].source.size() == 1) {
          gets_own = true;
          continue;
        }
        const auto [found, is_new] = sources.try_emplace(source, gets);
        if (is_new) ++gets;
        bits[i].push_back(found->second);
      }
      if (gets_own) bits[i].push_back(gets++);
    }
    std::vector<std::vector<std::uint64_t>> needs(set.size());
    const std::size_t words = (gets + 63) / 64;
    for (unsigned i = 0; i < set.size(); ++i) {
      needs[i].assign(words, 0);
      for (const std::size_t b : bits[i]) needs[i][b / 64] |= std::uint64_t{1} << b % 64;
      bool goes_out = false;
      for (const port_core& p : g_.nodes[set[i]].ports) {
        if (p.is.way != direction::out && !comes_in(p)) {
          const block_channel& c = g_.channels[p.in];
          if (!is_plain(c)) return false;
          for (std::size_t w = 0; w < words; ++w) needs[i][w] |= needs[member_[c.from] - 1][w];
        }
        for (const unsigned c : p.out) goes_out = goes_out || !is_inside(g_.channels[c].to);
      }
      if (!goes_out) continue;
      std::size_t count = 0;
      for (const std::uint64_t w : needs[i]) count += static_cast<std::size_t>(std::popcount(w));
      if (count != gets) return false;
    }
    return true;
  }

  const graph_core& g_;
  std::vector<unsigned> of_;                    // a node's set
  std::vector<unsigned> rank_;                  // of each node, in the order of the graph
  std::vector<std::vector<unsigned>> members_;  // of each set, by rank
  std::vector<unsigned> member_;                // of the set that is looked at: from 1 on
};

/// Makes one node of several.
class stretch_maker {
 public:
  stretch_maker(graph_core& g, std::vector<unsigned> members) : g_(g), nodes_(std::move(members)) {
    for (unsigned i = 0; i < nodes_.size(); ++i) index_[nodes_[i]] = i;
    made_->members.resize(nodes_.size());
    for (unsigned i = 0; i < nodes_.size(); ++i) follow(i);
    for (unsigned i = 0; i < nodes_.size(); ++i) order(i);
    number_ = static_cast<unsigned>(g_.nodes.size());
    place_outside();
    place_inside();
    made_->outside_ports = static_cast<unsigned>(ports_.size());
    for (unsigned i = 0; i < nodes_.size(); ++i) describe(i);
    if (!made_->is_resident()) made_->sets = g_.options.runs_in_flight;
    connect();
  }

 private:
  /// What is at a port, in memory that several may have one after the other.
  struct storage {
    std::size_t bytes = 0;
    unsigned in = block_channel::outside;  // the channel that it comes by
    std::vector<unsigned> out;             // channels that it goes by
    bool changed = false;                  // by a port that it comes in by
    std::vector<unsigned> users;           // members
    unsigned node = 0, port = 0;           // whose description its port has
    stretch::place at;
  };

  bool is_inside(const block_channel& c) const {
    return c.from != block_channel::outside && c.to != block_channel::outside && c.from != c.to &&
           index_.contains(c.from) && index_.contains(c.to);
  }

  unsigned add(const port_core& p, unsigned member, unsigned i) {
    storage s;
    s.bytes = p.is.shape.size_bytes();
    s.node = nodes_[member];
    s.port = i;
    all_.push_back(s);
    return static_cast<unsigned>(all_.size() - 1);
  }

  /// Members come in order: those that feed this one have been here.
  void follow(unsigned m) {
    node_core& n = g_.nodes[nodes_[m]];
    at_.emplace_back(n.ports.size());
    from_.emplace_back(n.ports.size());
    for (unsigned i = 0; i < n.ports.size(); ++i) {
      port_core& p = n.ports[i];
      unsigned s = 0;
      if (p.is.way != direction::out) {
        const block_channel& c = g_.channels[p.in];
        const bool inside = is_inside(c);
        if (inside) {
          s = at_[index_[c.from]][c.from_port];
          // Who changes it needs one of its own where others have it, too.
          if (p.is.way == direction::inout && g_.nodes[c.from].ports[c.from_port].out.size() != 1) {
            from_[m][i] = s;
            all_[s].users.push_back(m);
            s = add(p, m, i);
          }
        } else {
          s = add(p, m, i);
          all_[s].in = p.in;
        }
        if (p.is.way == direction::inout && all_[s].in != block_channel::outside)
          all_[s].changed = true;
      } else {
        s = add(p, m, i);
      }
      at_[m][i] = s;
      all_[s].users.push_back(m);
      for (const unsigned c : p.out)
        if (!is_inside(g_.channels[c])) all_[s].out.push_back(c);
    }
  }

  void order(unsigned m) {
    auto& after = made_->members[m].after;
    for (const port_core& p : g_.nodes[nodes_[m]].ports)
      if (p.is.way != direction::out && is_inside(g_.channels[p.in]))
        after.push_back(index_[g_.channels[p.in].from]);
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    std::vector<bool> before(nodes_.size(), false);
    for (const unsigned a : after) {
      before[a] = true;
      for (unsigned i = 0; i < a; ++i)
        if (before_[a][i]) before[i] = true;
    }
    before_.push_back(std::move(before));
  }

  /// A port for each that comes from outside, or goes there.
  void place_outside() {
    for (storage& s : all_) {
      if (s.in == block_channel::outside && s.out.empty()) continue;
      detail::port_description is = g_.nodes[s.node].ports[s.port].is;
      is.name = g_.port_name(s.node, s.port);
      is.way = s.in == block_channel::outside ? direction::out
               : s.changed                    ? direction::inout
                                              : direction::in;
      s.at = {true, static_cast<unsigned>(ports_.size())};
      port_core p(std::move(is));
      p.in = s.in;
      p.out = s.out;
      ports_.push_back(std::move(p));
    }
  }

  /// A buffer for each of the others, where those who used it before have all come before.
  void place_inside() {
    struct buffer {
      std::size_t bytes;
      std::vector<unsigned> users;
    };
    std::vector<buffer> buffers;
    std::multimap<std::size_t, unsigned> by_bytes;
    for (storage& s : all_) {
      if (s.at.outside) continue;
      const unsigned first = s.users.front();
      const auto [begin, end] = by_bytes.equal_range(s.bytes);
      auto found = std::find_if(begin, end, [&](const auto& b) {
        return std::all_of(buffers[b.second].users.begin(), buffers[b.second].users.end(),
                           [&](unsigned u) { return before_[first][u]; });
      });
      if (found == end) {
        found = by_bytes.emplace(s.bytes, static_cast<unsigned>(buffers.size()));
        buffers.push_back({s.bytes, {}});
      }
      s.at = {false, found->second};
      buffers[found->second].users = s.users;
    }
    for (const buffer& b : buffers) made_->buffer_bytes.push_back((b.bytes + 255) / 256 * 256);
  }

  void describe(unsigned m) {
    node_core& n = g_.nodes[nodes_[m]];
    stretch::member& to = made_->members[m];
    to.name = n.name;
    to.function = n.on_device;
    to.resident = n.resident;
    for (unsigned i = 0; i < n.ports.size(); ++i) {
      to.shapes.push_back(n.ports[i].is.shape);
      to.places.push_back(all_[at_[m][i]].at);
      to.copied_from.push_back(from_[m][i] ? std::optional(all_[*from_[m][i]].at) : std::nullopt);
      if (n.resident && from_[m][i])
        throw error(errc::invalid_option,
                    fmt::format("graph '{}': resident node '{}' changes in place what others read, "
                                "too; let it write another block, or make it a kernel",
                                g_.options.name, n.name));
    }
  }

  void connect() {
    for (const unsigned n : nodes_)
      for (const port_core& p : g_.nodes[n].ports)
        for (const unsigned c : p.out)
          if (is_inside(g_.channels[c])) inside_.push_back(c);
    for (unsigned i = 0; i < ports_.size(); ++i) {
      if (ports_[i].in != block_channel::outside) {
        block_channel& c = g_.channels[ports_[i].in];
        c.to = number_;
        c.to_port = i;
      }
      for (const unsigned o : ports_[i].out) {
        block_channel& c = g_.channels[o];
        c.from = number_;
        c.from_port = i;
      }
    }
    for (const unsigned c : inside_) g_.channels[c].inside = number_;
    for (const unsigned n : nodes_) {
      g_.nodes[n].part_of = number_;
      for (port_core& p : g_.nodes[n].ports) {
        p.in = block_channel::outside;
        p.out.clear();
      }
    }
    node_core n;
    const std::string& first = g_.nodes[nodes_.front()].name;
    n.name = n.stats.name = nodes_.size() == 1
                                ? first + " (1 node)"
                                : fmt::format("{} to {} ({} nodes)", first,
                                              g_.nodes[nodes_.back()].name, nodes_.size());
    (made_->is_resident() ? n.on_host : n.on_device) = [s = made_](detail::invocation& v) {
      s->run(v);
    };
    n.ports = std::move(ports_);
    n.runs_all_of = made_;
    g_.nodes.push_back(std::move(n));
  }

  graph_core& g_;
  const std::vector<unsigned> nodes_;
  std::map<unsigned, unsigned> index_;  // of a node among the members
  std::shared_ptr<stretch> made_ = std::make_shared<stretch>();
  std::vector<storage> all_;
  std::vector<std::vector<unsigned>> at_;  // a member's ports' storage
  std::vector<std::vector<std::optional<unsigned>>> from_;
  std::vector<std::vector<bool>>
      before_;  // which members come before which, in any number of steps
  std::vector<port_core> ports_;
  std::vector<unsigned> inside_;  // channels
  unsigned number_ = 0;
};

}  // namespace

void graph_core::find_stretches() {
  const bool merges = options.stretches && options.errors != on_error::go_on;
  for (std::vector<unsigned>& members : node_sets(*this, in_order(), merges).all())
    stretch_maker(*this, std::move(members));
}

void graph_core::undo_stretches() {
  std::erase_if(nodes, [](const node_core& n) { return n.runs_all_of != nullptr; });
  for (node_core& n : nodes) {
    n.part_of = block_channel::outside;
    for (port_core& p : n.ports) {
      p.in = block_channel::outside;
      p.out.clear();
    }
  }
  for (unsigned i = 0; i < channels.size(); ++i) {
    block_channel& c = channels[i];
    c.inside = block_channel::outside;
    c.from = c.named.from;
    c.from_port = c.named.from_port;
    c.to = c.named.to;
    c.to_port = c.named.to_port;
    if (c.to != block_channel::outside) nodes[c.to].ports[c.to_port].in = i;
    if (c.from != block_channel::outside) nodes[c.from].ports[c.from_port].out.push_back(i);
  }
}

}  // namespace grosr::flow
