"""A small job with its data, made anew: what the tests of the command line train."""

import json
import pathlib
import random
import subprocess

USERS, ITEMS, RATINGS = 300, 120, 6000

JOB = """
[data]
file = "ratings.csv"
label = "rating"
range = [1, 5]
[ids.user]
column = "user"
[ids.item]
column = "item"
[ids.tag]
file = "items.csv"
key = "item"
of = "item"
column = "tags"
keys = "string"
separator = "|"
[names.item]
file = "items.csv"
key = "item"
name = "name"
[tables.user]
dim = 16
initializer = { kind = "normal", stddev = 0.1 }
[tables.item]
dim = 16
initializer = { kind = "normal", stddev = 0.1 }
[tables.tag]
dim = 16
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "mf"
user = "user"
item = "item"
sides = ["tag"]
[optimizer]
rule = "adagrad"
learning_rate = 0.05
[schedule]
batch = 64
epochs = 3
[split]
by = ["user", "item"]
train_on_validation = true
[checkpoint]
every = 8
"""


class SmallRun:
    """The job's files in a folder, and the program that trains them."""

    def __init__(self, folder, program, changes=()):
        self.folder, self.program = pathlib.Path(folder), program
        self.job = self.folder / "small.toml"
        job = JOB
        for old, new in changes:
            assert old in job, old
            job = job.replace(old, new)
        self.job.write_text(job)
        self.write_data()

    def write_data(self):
        draw = random.Random(7)
        pairs = draw.sample(range(USERS * ITEMS), RATINGS)
        rows = [f"{pair // ITEMS},{pair % ITEMS},{1 + (pair // ITEMS + pair % ITEMS) % 5}\n" for pair in pairs]
        (self.folder / "ratings.csv").write_text("user,item,rating\n" + "".join(rows))
        items = [f"{i},Item {i},{'|'.join(f't{t}' for t in range(i % 4))}\n" for i in range(ITEMS)]
        (self.folder / "items.csv").write_text("item,name,tags\n" + "".join(items))

    def command(self, out, *options):
        return [self.program, "train", str(self.job), "--data", str(self.folder), "--out", str(out), "--threads", "2",
                "--json", *options]

    def train(self, out, *options):
        """Trains to the end; the events that it prints."""
        done = subprocess.run(self.command(out, *options), check=True, capture_output=True, text=True)
        return [json.loads(line) for line in done.stdout.splitlines()]
