"""Data in the shapes of criteo, gowalla and gutenberg, for those who do not have the real ones. The same every time."""

import gzip

import numpy as np


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("\n".join(lines) + "\n")


def zipf(random, keys, count, skew=1.05):
    """`count` of the numbers below `keys`, the first one the most frequent."""
    power = 1 - skew
    ranks = (random.random(count) * ((keys + 1.0) ** power - 1) + 1) ** (1 / power)
    return np.minimum(ranks.astype(np.int64) - 1, keys - 1)


def criteo(folder, records=120_000):
    """A label, 13 counts and 26 categories of 8 hexadecimal digits, tabs between them; some fields are empty."""
    random = np.random.default_rng(1)
    logit, columns = np.full(records, -1.2), []
    for field in range(39):
        keys = zipf(random, 40 if field < 13 else 10 + 4 ** (field % 9 + 1), records)
        logit += random.normal(0, 0.25, int(keys.max()) + 1)[keys]
        names = np.char.mod("%d", keys * keys) if field < 13 else np.char.mod("%08x", (keys + 1) * 2654435761 % 2**32)
        columns.append(np.where(random.random(records) < 0.1, "", names))
    labels = np.char.mod("%d", random.random(records) < 1 / (1 + np.exp(-logit)))
    write(folder / "criteo/criteo_sample.tsv.gz", ("\t".join(fields) for fields in zip(labels, *columns)))


def gowalla(folder, users=30_000, places=41_000, mean=27):
    """A line for each user: a number, then the places where the user was; the test file has others."""
    random = np.random.default_rng(2)
    names = random.permutation(places)
    train, test = [], []
    for user in range(users):
        count = min(800, 8 + int(random.lognormal(np.log(mean - 8), 0.9)))
        of_user = list(dict.fromkeys(names[zipf(random, places, 2 * count, 0.7)].tolist()))[:count]
        held_out = max(1, len(of_user) // 5)
        train.append(" ".join(map(str, [user, *of_user[held_out:]])))
        test.append(" ".join(map(str, [user, *of_user[:held_out]])))
    write(folder / "gowalla/train.txt.gz", train)
    write(folder / "gowalla/test.txt.gz", test)


def gutenberg(folder, words=4_000_000, vocabulary=30_000):
    """A text of words, a hundred a line, and scores of some pairs of them."""
    random = np.random.default_rng(3)
    letters = random.integers(97, 123, (vocabulary, 6), dtype=np.uint8)
    names = np.array([bytes(row).decode() for row in letters])
    text = names[zipf(random, vocabulary, words)]
    write(folder / "gutenberg/corpus.txt.gz", (" ".join(text[i:i + 100]) for i in range(0, words, 100)))
    pairs = [f"{names[i]},{names[i + 1]},{i % 10}" for i in range(0, 200, 2)]
    (folder / "gutenberg/wordsim353.csv").write_text("\n".join(["Word 1,Word 2,Human (mean)", *pairs]) + "\n")
