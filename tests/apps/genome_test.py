"""genome: k-mers and contigs are those that one thread finds, on any number of ranks; bad input is one line."""

import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from apps import app, check, finish, run, write  # noqa: E402
from cli import run_json  # noqa: E402

PROGRAM = app("genome")


def rows_of(*arguments):
    """The rows of both phases, which are right."""
    code, document, out, err = run_json("--device", "host:0", "--link", "8K", *arguments, program=PROGRAM)
    if not check(code == 0 and document is not None, f"{arguments}: exit code {code}: {out} {err}"):
        return {}, {}
    kmers, contigs = document["rows"]
    check(kmers["valid"] and kmers["kmers_per_s"] > 0 and contigs["valid"], f"{arguments}: {kmers} {contigs}")
    return kmers, contigs


def bases(n, seed):
    return "".join(random.Random(seed).choices("ACGT", k=n))


def reverse_complement(text):
    return text[::-1].translate(str.maketrans("ACGT", "TGCA"))


for ranks in (1, 2, 5):
    kmers, contigs = rows_of("--ranks", str(ranks), "--bases", "1500")
    # No 21-mer comes twice; the two at the ends have nothing beside them on one side.
    check(kmers["different_kmers"] == 1480 and contigs["contigs"] == 1 and contigs["longest_bases"] == 1498, f"{kmers} {contigs}")
    check((kmers["kmer_words"] > 0) == (ranks > 1), f"{ranks} ranks: {kmers['kmer_words']} words a k-mer")
# Short k-mers come often: many contigs, more pieces than there is room for at first, gaps between reads.
for seed in (1, 2, 3):
    contigs = rows_of("--ranks", "1", "--bases", "4000", "--kmer", "7", "--coverage", "2", "--read", "30", "--seed", str(seed))[1]
    check(contigs["contigs"] > 250, f"{contigs}")
rows_of("--ranks", "3", "--bases", "300", "--kmer", "3")
rows_of("--ranks", "3", "--bases", "1000", "--kmer", "31", "--repeat", "2")

with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "some.fa")

    def contigs_of(*sequences, kmer=21):
        write(file, "".join(f">{i}\n{s}\n" for i, s in enumerate(sequences)))
        return rows_of("--ranks", "2", "--fasta", file, "--kmer", str(kmer), "--coverage", "20", "--read", "60")[1]

    # Lines of any length, small letters, what is not known, Windows' line ends; sequences that are too short.
    text = bases(300, 1)
    contigs = contigs_of("\r\n".join((text[:100], text[100:101], text[101:].lower())) + "\r\n", "ACGT", bases(80, 2) + "NNrn" + bases(90, 3))
    check(contigs["contigs"] == 3 and contigs["longest_bases"] == 298, f"{contigs}")
    # A repeat that is longer than k parts what is on both sides of it; also one of the other strand.
    repeat = bases(40, 4)
    for other in (repeat, reverse_complement(repeat)):
        contigs = contigs_of(bases(200, 5) + repeat + bases(200, 6) + other + bases(200, 7))
        check(contigs["contigs"] == 4, f"{contigs}")
    # A circle has no end: the repeat of 100 bases comes four times, one after the other.
    contigs = contigs_of(bases(100, 8) * 4)
    check(contigs["contigs"] == 0, f"{contigs}")
    # A contig that is its own reverse complement.
    half = bases(150, 9)
    contigs = contigs_of(half + reverse_complement(half))
    check(contigs["contigs"] == 1 and contigs["longest_bases"] == 298, f"{contigs}")

    for content, said in (
        ("", "longest sequence"),
        ("ACGT\n", "line 1"),
        (">a\nACGTACGT\nAC%T\n", "line 3"),
        (">a\nACGT\n", "longest sequence of known bases has 4"),
        ("\0\1\2" * 100, "line 1"),
    ):
        write(file, content)
        code, out, err = run("--fasta", file, program=PROGRAM)
        check(code == 2 and err.count("\n") == 1 and said in err and err.startswith("genome: "), f"{content!r}: {code} {out} {err}")
    for path in (os.path.join(folder, "none.fa"), folder):
        code, out, err = run("--fasta", path, program=PROGRAM)
        check(code == 2 and err.count("\n") == 1 and path in err, f"{path}: {code} {out} {err}")

for arguments, said in (
    (["--ranks", "0"], "--ranks"),
    (["--ranks", "65"], "--ranks"),
    (["--link", "4K"], "--link"),
    (["--kmer", "20"], "--kmer"),
    (["--kmer", "33"], "--kmer"),
    (["--read", "21"], "--read"),
    (["--bases", "5"], "--bases"),
    (["--coverage", "0"], "--coverage"),
    (["--bases", "5000", "--fasta", "some.fa"], "--fasta"),
    (["--device", "cuda:99"], "cuda:99"),
):
    code, out, err = run(*arguments, program=PROGRAM)
    check(code == 2 and err.count("\n") == 1 and said in err and err.startswith("genome: "), f"{arguments}: {code} {out} {err}")
code, out, err = run("--help", program=PROGRAM)
check(code == 0 and "Examples" in out, f"--help: {code} {err}")

finish("genome")
