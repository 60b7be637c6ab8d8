// Tour: lanes of two ranks add to an array that lies on both.
#include "work/messages.hpp"

#include "tour/parts.hpp"

namespace grosr::tool {

void tour_messages(session& s, const std::string&) {
  const auto ranks = make_counting_ranks(s.where, 2, s.sized(8192u, 64u), s.sized(256u, 50u));
  const samples us =
      s.repeat("messages", {1, 5, 2.0}, [&] { return timed([&] { ranks->count(); }); });
  const auto additions = static_cast<double>(ranks->additions());
  row line("messages");
  line.set("additions", additions)
      .set("additions_per_s", additions * 1e6 / us.median())
      .check(ranks->is_right(), "the bins do not hold what was added to them");
  s.out.add(line);
}

}  // namespace grosr::tool
