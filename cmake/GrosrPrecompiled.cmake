# grosr_precompile(<target> <kind>): the target's C++ files begin with headers that are parsed once
# for all targets of a kind. Only headers of others: editing one of GROSR's recompiles what includes
# it. Files still name what they use.
#   test      GoogleTest and the standard library
#   program   fmt, JSON and the standard library; not CLI11, which costs every file that has it seconds
#             of code generation
# Files compiled with other options than the rest (OpenMP) set SKIP_PRECOMPILE_HEADERS.
include_guard(GLOBAL)

set(grosr_precompiled_standard <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <cstdio>
  <cstring> <functional> <map> <memory> <mutex> <optional> <random> <set> <span> <sstream> <string>
  <string_view> <thread> <utility> <vector>)
set(grosr_precompiled_test <gtest/gtest.h>)
set(grosr_precompiled_program <fmt/format.h> <nlohmann/json.hpp>)
set(grosr_precompiled_test_libraries GTest::gtest)
set(grosr_precompiled_program_libraries fmt::fmt nlohmann_json::nlohmann_json)

function(grosr_precompile target kind)
  if(NOT TARGET grosr_precompiled_${kind})
    set(source "${PROJECT_BINARY_DIR}/generated/precompiled_${kind}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "// Compiled for the headers before it.\n")
    add_library(grosr_precompiled_${kind} OBJECT "${source}")
    target_link_libraries(grosr_precompiled_${kind} PRIVATE grosr::grosr ${grosr_precompiled_${kind}_libraries})
    target_precompile_headers(grosr_precompiled_${kind} PRIVATE
      ${grosr_precompiled_standard} ${grosr_precompiled_${kind}})
    grosr_own_target(grosr_precompiled_${kind})
  endif()
  target_precompile_headers(${target} REUSE_FROM grosr_precompiled_${kind})
endfunction()
