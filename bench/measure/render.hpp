// A row as text, and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "measure/row.hpp"

namespace grosr::tool {

/// Several lines, each ended. `judge`: say whether targets were met.
std::string as_text(const row& r, bool judge);

/// One line, ended.
std::string as_line(const row& r);

/// {"name", "valid", values..., and where there are any "limits", "baselines", "targets", "notes"}.
nlohmann::ordered_json as_json(const row& r, bool judge);

}  // namespace grosr::tool
