"""What the compiler says of programs that break a rule."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(test, headers, cases):
    """Compiles each case: what it is; a program that includes some of `headers`, lines of #include; words that must
    be in an error, or None when it must compile. The headers are parsed once, for all. Returns how many are wrong."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if not compiler:
        sys.exit(f"{test}: no C++ compiler found; set CXX")
    failures = 0
    with tempfile.TemporaryDirectory(prefix="grosr-refusals-") as folder:
        header = pathlib.Path(folder, "headers.hpp")
        header.write_text(headers)
        flags = ["-std=c++20", "-I", str(ROOT / "include")]
        made = subprocess.run([compiler, *flags, "-x", "c++-header", header, "-o", f"{header}.gch"],
                              capture_output=True, text=True, timeout=120)
        if made.returncode != 0:
            sys.exit(f"{test}: the headers do not compile:\n{made.stderr}")
        for name, program, words in cases:
            run = subprocess.run([compiler, *flags, "-fsyntax-only", "-include", header, "-x", "c++", "-"],
                                 input=program, capture_output=True, text=True, timeout=120)
            errors = re.findall(r"error: (.*)", run.stderr)
            if words is None:
                problem = "it does not compile:\n" + run.stderr if run.returncode else ""
            elif run.returncode == 0:
                problem = "it compiles"
            elif not any(words in e for e in errors):
                problem = f'no error says "{words}":\n{run.stderr}'
            else:
                problem = ""
            print("%-40s %s" % (name, problem or "ok"))
            failures += bool(problem)
    return failures
