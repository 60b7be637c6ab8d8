// The kernel of one launch of the fuzzer.
#pragma once

#include "fuzz/fuzz_draw.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::tool::fuzz {

/// Lanes, warps, blocks and the grid make calls drawn from `w`, and note in it what came of them.
void launch_calls(simt::stream& s, simt::shape grid, const world& w, const sys::server_ref& sys);

}  // namespace grosr::tool::fuzz
