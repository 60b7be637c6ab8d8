// The stages as programs of their own, which pipes connect: gesture capture | gesture transform |
// gesture filter | gesture detect.
#pragma once

#include "feed.hpp"
#include "grosr/simt/device.hpp"
#include "recording.hpp"

namespace grosr::gesture {

/// Frames of a recording in a loop, to standard output. `after_go`: the first one when a byte has
/// come from standard input.
void capture_stage(const recording& r, const course& c, bool after_go);
void transform_stage(const device& d);
void filter_stage(const device& d, unsigned radius);
/// Events to standard output: as text, or, with `as_stream`, as a stream.
void detect_stage(const device& d, bool as_stream);

}  // namespace grosr::gesture
