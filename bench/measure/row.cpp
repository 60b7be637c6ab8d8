#include "measure/row.hpp"

namespace grosr::tool {

row& row::set(std::string key, double number) {
  values_.emplace_back(std::move(key), number);
  return *this;
}

double row::value(const std::string& key) const {
  for (const auto& [name, number] : values_)
    if (name == key) return number;
  return 0;
}

row& row::latency(const samples& s) {
  return set("p50_us", s.median())
      .set("p99_us", s.quantile(0.99))
      .set("min_us", s.min())
      .set("max_us", s.max())
      .set("mean_us", s.mean())
      .set("stddev_us", s.deviation())
      .set("samples", static_cast<double>(s.count()));
}

row& row::time(const samples& s) {
  return set("median_us", s.median())
      .set("min_us", s.min())
      .set("max_us", s.max())
      .set("mean_us", s.mean())
      .set("stddev_us", s.deviation())
      .set("repeats", static_cast<double>(s.count()));
}

row& row::rate(const samples& s, const std::string& noun, double count) {
  set(noun + "_per_s", s.median() > 0 ? count * 1e6 / s.median() : 0);
  return time(s);
}

row& row::check(bool ok, const std::string& otherwise) {
  if (!ok && wrong_.empty()) wrong_ = otherwise.empty() ? "wrong result" : otherwise;
  return *this;
}

row& row::compare(side kind, std::string what, const std::string& key, double number) {
  comparisons_.push_back(
      {kind, std::move(what), key, number, number != 0 ? value(key) / number : 0});
  return *this;
}

row& row::limit(std::string what, const std::string& key, double number) {
  return compare(side::limit, std::move(what), key, number);
}

row& row::baseline(std::string what, const std::string& key, double number) {
  return compare(side::baseline, std::move(what), key, number);
}

row& row::at_most(const std::string& key, double bound, std::string reason) {
  targets_.push_back({key, true, bound, std::move(reason), value(key) <= bound});
  return *this;
}

row& row::at_least(const std::string& key, double bound, std::string reason) {
  targets_.push_back({key, false, bound, std::move(reason), value(key) >= bound});
  return *this;
}

row& row::note(std::string text) {
  notes_.push_back(std::move(text));
  return *this;
}

}  // namespace grosr::tool
