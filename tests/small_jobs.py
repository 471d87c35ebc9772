"""A small job of each kind of model besides that of small_run.py, with its data, made anew."""

import random

CTR = """
[data]
file = "clicks.tsv"
field_separator = "\\t"
header = false
label = 1
range = [0, 1]
[ids.field]
columns = ["2-4"]
buckets = [4]
min_count = 2
[tables.vector]
ids = "field"
dim = 4
initializer = { kind = "normal", stddev = 0.1 }
[tables.weight]
ids = "field"
dim = 1
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "ctr"
linear = ["weight"]
deep = ["vector"]
hidden = [8]
[optimizer]
rule = "adagrad"
learning_rate = 0.1
[schedule]
batch = 64
epochs = 2
"""

PAIRWISE = """
[data]
format = "lists"
file = "pairs.txt"
item = "place"
[ids.user]
[ids.place]
[tables.user]
dim = 8
initializer = { kind = "normal", stddev = 0.1 }
[tables.place]
dim = 8
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "pairwise"
user = "user"
item = "place"
[optimizer]
rule = "sgd"
learning_rate = 0.1
[schedule]
batch = 64
epochs = 2
[split]
train_on_validation = true
"""

NEXT_ITEM = """
[data]
file = "orders.csv"
user = "customer"
item = "product"
time = "when"
[ids.customer]
column = "who"
[ids.product]
column = "what"
keys = "string"
[ids.word]
of = "product"
file = "products.csv"
key = "what"
column = "called"
separator = " "
keys = "string"
[names.product]
file = "products.csv"
key = "what"
name = "called"
[tables.bought]
ids = "product"
dim = 8
initializer = { kind = "normal", stddev = 0.1 }
[tables.next]
ids = "product"
dim = 8
initializer = { kind = "normal", stddev = 0.1 }
[tables.bought_word]
ids = "word"
dim = 8
initializer = { kind = "normal", stddev = 0.1 }
[tables.next_word]
ids = "word"
dim = 8
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "next_item"
history = "bought"
item = "next"
history_attributes = "bought_word"
attributes = "next_word"
negatives = 5
[optimizer]
rule = "adagrad"
learning_rate = 0.1
[schedule]
batch = 64
epochs = 2
"""

SKIPGRAM = """
[data]
file = "text.txt"
[ids.word]
[tables.word]
dim = 8
initializer = { kind = "normal", stddev = 0.1 }
[tables.context]
ids = "word"
dim = 8
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "skipgram"
word = "word"
context = "context"
[optimizer]
rule = "sgd"
learning_rate = 0.05
[schedule]
batch = 8
epochs = 1
[split]
test = 0.1
train_on_validation = true
"""

JOBS = {"ctr": CTR, "pairwise": PAIRWISE, "next_item": NEXT_ITEM, "skipgram": SKIPGRAM}


def write_small_jobs(folder):
    """The job files by model, "MODEL.toml" in the folder that their data are in too."""
    draw = random.Random(3)
    clicks = [f"{int(draw.random() < 0.3)}\ta{draw.randrange(20)}\tb{draw.randrange(6)}\t{draw.randrange(40)}\n"
              for _ in range(800)]
    (folder / "clicks.tsv").write_text("".join(clicks))
    pairs = [f"{user} {' '.join(map(str, draw.sample(range(50), 12)))}\n" for user in range(60)]
    (folder / "pairs.txt").write_text("".join(pairs))
    orders = [f"{draw.randrange(70)},P{draw.randrange(30)},{time}\n" for time in range(1500)]
    (folder / "orders.csv").write_text("who,what,when\n" + "".join(orders))
    products = [f"P{p},{'red' if p % 2 else 'blue'} thing {p}\n" for p in range(30)]
    (folder / "products.csv").write_text("what,called\n" + "".join(products))
    words = [draw.choice(["seven", "eight", "nine", "cat", "dog", "cow"]) for _ in range(3000)]
    (folder / "text.txt").write_text(" ".join(words))
    for model, job in JOBS.items():
        (folder / f"{model}.toml").write_text(job)
