"""Times the job `gutenberg` beside gensim's word2vec: words a second of the same text, settings and threads.

Usage: bench_gensim.py [--embertable COMMAND] [--data FOLDER] [--threads N] [--epochs N] [--repetitions R] [--json]

Words are those of the training text before rare and frequent ones are left out. gensim gets the text as a list of lists
and as a file, which it can read without Python's lock; the way that is faster on a part of the text counts. Reading the
text and counting its words is not timed, nor is measuring; in turns, medians of the repetitions.
"""

import gzip
import pathlib
import re
import tempfile
import time

import job_bench

job_bench.limit_threads()

import gensim
from gensim.models import Word2Vec
from gensim.models.word2vec import FAST_VERSION

import generated_data

FILES = ["gutenberg/corpus.txt.gz", "gutenberg/wordsim353.csv"]
SENTENCE = 1000  # gensim wants the text in pieces; no window reaches beyond one
TRIAL = 500  # pieces


def read_sentences(path):
    with gzip.open(path, "rt", encoding="utf-8") as text:
        words = [m[0] for m in re.finditer(r"[a-z]+(?:'[a-z]+)?", text.read().lower().replace("\u2019", "'"))]
    words = words[:len(words) - len(words) // 20]
    return [words[i:i + SENTENCE] for i in range(0, len(words), SENTENCE)]


class Text:
    """Pieces of text in one of gensim's two forms."""

    def __init__(self, sentences, file=None):
        self.words = sum(map(len, sentences))
        self.form = {"corpus_file": str(file)} if file else {"corpus_iterable": sentences}
        if file:
            file.write_text("".join(" ".join(sentence) + "\n" for sentence in sentences))


def gensim_rate(text, options, epochs=1):
    model = Word2Vec(vector_size=100, window=5, min_count=5, sample=1e-4, sg=1, negative=5, alpha=0.025, min_alpha=0,
                     workers=options.threads, seed=1)
    model.build_vocab(**text.form)
    begin = time.perf_counter()
    with job_bench.BusyThreads() as busy:
        model.train(**text.form, total_examples=model.corpus_count, total_words=model.corpus_total_words, epochs=epochs)
    return text.words * epochs / (time.perf_counter() - begin), busy.number


def faster_form(sentences, options, folder):
    part = sentences[:TRIAL]
    trial = {form: gensim_rate(Text(part, file), options)[0]
             for form, file in (("lists", None), ("file", folder / "part.txt"))}
    form = max(trial, key=trial.get)
    return form, Text(sentences, folder / "text.txt" if form == "file" else None)


def main():
    options = job_bench.options_of("Times the job gutenberg beside gensim's word2vec.", epochs=3)
    if FAST_VERSION < 0:
        raise SystemExit("bench_gensim: gensim must have its C routines, got an installation without them")
    with job_bench.data_folder(options, FILES, generated_data.gutenberg) as (folder, data), \
            tempfile.TemporaryDirectory() as files:
        sentences = read_sentences(folder / FILES[0])
        form, text = faster_form(sentences, options, pathlib.Path(files))

        def ours():
            _, events = job_bench.our_rate(options, "gutenberg", folder)
            of = {event["event"]: event for event in events}
            return of["start"]["training_samples"] * options.epochs / of["done"]["seconds"], None

        lanes = {"embertable": ours, "gensim": lambda: gensim_rate(text, options)}
        job_bench.compare(options, "gutenberg", f"gensim {gensim.__version__}", ("words", 1e6, "M words/s"), lanes, data,
                          f", text as {form}")


if __name__ == "__main__":
    main()
