// One line of results: values with their units, whether they were checked, and what they stand
// beside: limits and baselines of the same run, and the target.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "measure/samples.hpp"

namespace grosr::tool {

class row {
 public:
  enum class side { limit, baseline };
  struct comparison {
    side kind;
    std::string what;
    std::string key;  ///< names the unit, and the value of this row that it stands beside
    double number;
    double ratio;  ///< this row's value over `number`
  };
  struct target {
    std::string key;
    bool at_most;
    double bound;
    std::string reason;  ///< how the bound came about, e.g. "1.5x the ping-pong"; may be empty
    bool met;
  };

  explicit row(std::string name) : name_(std::move(name)) {}

  /// Adds a value. The last word of the key is its unit: "p50_us", "tasks_per_s", "gb_per_s".
  row& set(std::string key, double number);
  double value(const std::string& key) const;  ///< 0 where there is none

  row& latency(const samples& s);  ///< p50_us, p99_us, min_us, max_us, mean_us, stddev_us, samples
  row& time(const samples& s);     ///< median_us, min_us, max_us, mean_us, stddev_us, repeats
  /// The same, and `noun`_per_s from the median, for that many of them done in each repeat.
  row& rate(const samples& s, const std::string& noun, double count);

  /// Marks the row invalid unless `ok`: `otherwise` says what was wrong.
  row& check(bool ok, const std::string& otherwise);
  row& limit(std::string what, const std::string& key, double number);
  row& baseline(std::string what, const std::string& key, double number);
  row& at_most(const std::string& key, double bound, std::string reason = "");
  row& at_least(const std::string& key, double bound, std::string reason = "");
  row& note(std::string text);

  const std::string& name() const { return name_; }
  bool valid() const { return wrong_.empty(); }
  const std::string& wrong() const { return wrong_; }
  const std::vector<std::pair<std::string, double>>& values() const { return values_; }
  const std::vector<comparison>& comparisons() const { return comparisons_; }
  const std::vector<target>& targets() const { return targets_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  row& compare(side kind, std::string what, const std::string& key, double number);

  std::string name_, wrong_;
  std::vector<std::pair<std::string, double>> values_;
  std::vector<comparison> comparisons_;
  std::vector<target> targets_;
  std::vector<std::string> notes_;
};

}  // namespace grosr::tool
