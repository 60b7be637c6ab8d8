"""A kernel of wide tasks has a small stack. One call of a spawn's rare path by its address, and nearly all that a spawn
calls saves registers in local memory (docs/design.md, "What a GPU does to a warp"): this program had 704 bytes then."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST = 400  # bytes; nvcc 13.0 makes 256
PROGRAM = """
#include "grosr/grosr.hpp"
struct sum {
  using result = int;
  static constexpr grosr::width width = grosr::width::warp;
  int of[2];
  GROSR_DEVICE void operator()(auto& c) const {
    if (c.rank() == 0) c.give(of[0] + of[1]);
  }
};
struct call {
  using result = int;
  static constexpr grosr::width width = grosr::width::warp;
  int n;
  GROSR_DEVICE void operator()(auto& c) const {
    if (c.rank() != 0) return;
    if (n < 2) return c.give(n);
    auto& next = c.join(sum{});
    c.fork(call{n - 1}, &next.of[0]);
    c.fork(call{n - 2}, &next.of[1]);
  }
};
int main() { return grosr::runtime<call, sum>().fork(call{3}).get(); }
"""

nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
if not nvcc:
    print("stack: no nvcc, nothing to compile")
    sys.exit(0)
with tempfile.TemporaryDirectory(prefix="grosr-stack-") as folder:
    source = pathlib.Path(folder, "calls.cu")
    source.write_text(PROGRAM)
    made = subprocess.run([nvcc, "-std=c++20", "-O3", "-arch=sm_90", "-cubin", "-Xptxas=-v", "--expt-relaxed-constexpr",
                           "-I", str(ROOT / "include"), source, "-o", source.with_suffix(".cubin")],
                          capture_output=True, text=True, timeout=240)
    if made.returncode != 0:
        sys.exit(f"stack: the program does not compile:\n{made.stderr}")
found = [int(n) for n in re.findall(r"(\d+) bytes cumulative stack size", made.stderr)]
if not found:
    sys.exit(f"stack: nvcc does not say how large the stack is:\n{made.stderr}")
print(f"stack: {max(found)} bytes, at most {MOST}")
sys.exit(1 if max(found) > MOST else 0)
