"""Times the job `gutenberg` beside gensim's word2vec: words a second of the same text, settings and threads.

Usage: bench_gensim.py --embertable COMMAND --data FOLDER [--threads N] [--epochs N] [--repetitions R] [--json]

Words are those of the training text before rare and frequent ones are left out, times the epochs. Reading the text and
counting its words is not timed, nor is measuring; in turns, medians of the repetitions.
"""

import argparse
import gzip
import json
import os
import pathlib
import re
import statistics
import subprocess
import time

import gensim
from gensim.models import Word2Vec

JOB = pathlib.Path(__file__).parents[2] / "examples/jobs/gutenberg.toml"
TEXT = "gutenberg/corpus.txt.gz"
SENTENCE = 1000  # gensim wants the text in pieces; no window reaches beyond one
WANTED = 1


def read_words(path):
    with gzip.open(path, "rt", encoding="utf-8") as text:
        words = [m[0] for m in re.finditer(r"[a-z]+(?:'[a-z]+)?", text.read().lower().replace("\u2019", "'"))]
    words = words[:len(words) - len(words) // 20]
    return [words[i:i + SENTENCE] for i in range(0, len(words), SENTENCE)]


def gensim_rate(sentences, options):
    model = Word2Vec(vector_size=100, window=5, min_count=5, sample=1e-4, sg=1, negative=5, alpha=0.025, min_alpha=0,
                     workers=options.threads, seed=1)
    model.build_vocab(sentences)
    begin = time.perf_counter()
    model.train(sentences, total_examples=model.corpus_count, epochs=options.epochs)
    return sum(map(len, sentences)) * options.epochs / (time.perf_counter() - begin)


def our_rate(options):
    report = subprocess.run(
        [options.embertable, "train", str(JOB), "--data", options.data, "--threads", str(options.threads), "--json",
         "--set", f"schedule.epochs={options.epochs}"], check=True, stdout=subprocess.PIPE, text=True)
    events = {line["event"]: line for line in map(json.loads, report.stdout.splitlines())}
    return events["start"]["training_samples"] * options.epochs / events["done"]["seconds"]


def main():
    parser = argparse.ArgumentParser(description="Times the job gutenberg beside gensim's word2vec.")
    parser.add_argument("--embertable", default="build/bin/embertable", help="the command line")
    parser.add_argument("--data", required=True, help=f"the folder with {TEXT}")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args()

    sentences = read_words(pathlib.Path(options.data) / TEXT)
    rates = {"embertable": [], "gensim": []}
    for _ in range(options.repetitions):
        rates["embertable"].append(our_rate(options))
        rates["gensim"].append(gensim_rate(sentences, options))
    ours, theirs = (statistics.median(rates[name]) for name in ("embertable", "gensim"))
    if options.json:
        print(json.dumps({"job": "gutenberg", "threads": options.threads, "embertable_words_per_second": ours,
                          "gensim_words_per_second": theirs, "ratio": ours / theirs}))
    else:
        below = "" if ours / theirs >= WANTED else f"  below {WANTED}"
        print(f"gutenberg, dim 100, {options.threads} threads, gensim {gensim.__version__}, "
              f"median of {options.repetitions}\n"
              f"  embertable {ours / 1e6:8.3f} million words/s\n  gensim     {theirs / 1e6:8.3f}\n"
              f"  ratio      {ours / theirs:8.2f}{below}")


if __name__ == "__main__":
    main()
