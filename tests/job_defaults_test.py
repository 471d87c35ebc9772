"""Jobs that leave out all that has a default: the ones that docs/jobs.md begins with train, and `--show` prints jobs that
train to the same bits.

Usage: job_defaults_test.py EMBERTABLE
"""

import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest

from tutorial_test import CHANGING, sessions

PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
SOURCE = pathlib.Path(__file__).resolve().parents[1]
DOCUMENT = (SOURCE / "docs/jobs.md").read_text()
JOBS = dict(re.findall(r"<!-- job: (\w+) -->\n```toml\n(.*?)```", DOCUMENT, re.DOTALL))
SHORT = "--set=schedule.epochs=1"


def normal(stddev):
    return {"kind": "normal", "mean": 0.0, "stddev": stddev}


def write_data(folder):
    """Small files in which there is something to learn; random.random alone is the same in every Python."""
    chance = random.Random(1).random

    def one_of(count):
        return int(chance() * count)

    def write(name, header, rows):
        lines = [",".join(map(str, row)) for row in rows]
        (folder / name).write_text("\n".join([header, *lines]) + "\n")

    # Users and items have tastes on two axes; a rating is how well they fit, and what is liked fits.
    users, items = range(100, 400), range(7, 107)
    taste = {key: (chance() * 2 - 1, chance() * 2 - 1) for key in [*users, *items]}

    def fit(user, item):
        return sum(a * b for a, b in zip(taste[user], taste[item]))

    rated = [(u, i) for u in users for i in items if chance() < 0.3]
    order = sorted(rated, key=lambda _: chance())
    write("ratings.csv", "user_id,movie_id,rating",
          [(u, i, min(5, max(1, int(3.5 + 2 * fit(u, i) + taste[i][0] + chance() - 0.5)))) for u, i in order])
    liked = [(u, i) for u, i in order if fit(u, i) + 0.3 * chance() > 0.25]
    write("likes.csv", "user_id,movie_id", liked)
    # One product mostly leads to the next.
    orders = []
    for customer in range(1000):
        product = one_of(40)
        for day in range(3 + one_of(8)):
            orders.append((customer, f"p{product}", f"2024-05-{1 + day:02}"))
            product = (product + 1) % 40 if chance() < 0.6 else one_of(40)
    write("orders.csv", "customer,product,ordered_at", sorted(orders, key=lambda _: chance()))
    clicks = []
    for _ in range(20_000):
        device, country, article, visits = one_of(4), one_of(30), one_of(50), int(chance() ** 3 * 50)
        odds = -2.5 + 0.7 * device + (country * 7 % 5 == 0) - 1.5 * (article * 3 % 4 == device) + 0.05 * visits
        clicks.append((int(chance() < 1 / (1 + math.exp(-odds))), f"d{device}", f"c{country}", article, visits))
    write("clicks.csv", "clicked,device,country,article,visits", clicks)
    write("tags.csv", "what,tags", [(i, f"t{i % 3} t{i % 5}") for i in items])
    lists = [" ".join(map(str, (u, *[i for v, i in liked if v == u]))) for u in users]
    (folder / "lists.txt").write_text("\n".join(line for line in lists if " " in line) + "\n")
    # A sentence has words of one of 20 topics and words that are in all; the first words are the most frequent.
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    words = [a + b + c for a in syllables[:20] for b in syllables for c in syllables[::20]]
    text = []
    for _ in range(12_000):
        topic = one_of(20)
        text += [words[100 + 150 * topic + int(150 * chance() ** 2) if chance() < 0.6 else int(100 * chance() ** 2)]
                 for _ in range(10)]
    (folder / "novels.txt").write_text(" ".join(text))


class JobDefaults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        write_data(cls.folder)

    def call(self, *words):
        """(exit code, stdout, stderr), in a folder without data: jobs find those beside them."""
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, cwd="/")
        return done.returncode, done.stdout, done.stderr

    def write(self, text, name="job.toml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def show(self, text, *options):
        code, out, err = self.call("train", "--show", self.write(text), *options)
        self.assertEqual((code, err), (0, ""))
        return out

    def shown(self, text, *options):
        return tomllib.loads(self.show(text, *options))

    def digest(self, text, *options):
        code, out, err = self.call("train", self.write(text), "--json", "--threads", 2, *options)
        self.assertEqual((code, err), (0, ""))
        return json.loads(out.splitlines()[-1])["digest"]

    def test_the_documents_jobs_are_short(self):
        self.assertEqual(set(JOBS), {"ratings", "clicks", "likes", "sessions", "text"})
        for name, job in JOBS.items():
            self.assertLessEqual(len(job.splitlines()), 15 if name == "clicks" else 12, name)

    def test_every_page_shows_what_one_sees(self):
        """Lines `...` of the document stand for any number of lines."""
        with tempfile.TemporaryDirectory() as folder:
            write_data(pathlib.Path(folder))
            for name, job in JOBS.items():
                (pathlib.Path(folder) / f"{name}.toml").write_text(job)
            environment = dict(os.environ, PATH=f"{pathlib.Path(PROGRAM).parent}:{os.environ['PATH']}")
            tried = list(sessions(DOCUMENT))
            self.assertGreaterEqual(len(tried), len(JOBS))
            for command, lines in tried:
                done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.assertEqual(done.returncode, 0, done.stdout)
                wanted = "\n".join(re.escape(CHANGING.sub("# ", line)) for line in lines)
                wanted = re.sub(r"^ *\\\.\\\.\\\.$", "(?:.*\n)*?.*", wanted.replace("\\ ", " "), flags=re.MULTILINE)
                got = "\n".join(CHANGING.sub("# ", line.rstrip()) for line in done.stdout.splitlines())
                self.assertRegex(got, rf"\A{wanted}\Z", command)

    def test_what_the_document_says_to_change_next_is_taken(self):
        changes = {
            "ratings": ["model.regularization=0.2 schedule.patience=3", 'ids.item={column="movie_id",keys="string"}',
                        'data.field_separator=";" data.where.rating="filled"', 'split.by=["user","item"]',
                        'split.time="rated_at"', "split.train_on_validation=true"],
            "clicks": ['data.positive=["yes"]', "schedule.epochs=4 schedule.patience=1", 'data.numbers=["price"]',
                       "ids.field.limits.visits=[18,30] ids.field.buckets=[]", 'split.by=["customer"]', "model.hidden=[64]",
                       'ids.tags={column="tags",separator="|",keys="string"}', "ids.field.min_count=10",
                       'ids.field={columns=["device"],hash=1000000}', 'model.linear=["weight"] tables.weight.ids="field"'],
            "likes": ["data.min_events=5", 'split.rule="last" data.time="when"', 'metrics=["hr@10","ndcg@10"]',
                      'data.where.rating=["filled",">= 4"]', 'checkpoint.every="end"'],
            "sessions": ['ids.user.column="session"', 'data.once_per="order"', "model.last=10"],
            "text": ["ids.word.min_count=1", 'data.tokens="blanks"', "model.window=10",
                     'split.test=0.05 split.validation=0.05 data.similarity="pairs.csv"'],
        }
        self.assertEqual(set(changes), set(JOBS))
        for name, lists in changes.items():
            for change in lists:
                words = re.split(r" (?=[a-z]+\.)", change)
                self.show(JOBS[name], *[f"--set={word}" for word in words])

    def test_every_key_says_whether_it_is_required(self):
        tables = re.findall(r"^\| [^|\n]+ \| default \| \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", DOCUMENT, re.MULTILINE)
        self.assertGreater(len(tables), 15)
        for line in "".join(tables).splitlines():
            self.assertRegex(line, r"^\| [^|]+ \| [^| ]", "the cell of the default is empty")

    def test_what_is_shown_trains_to_the_same_bits(self):
        for name, job in JOBS.items():
            with self.subTest(name):
                whole = self.show(job)
                self.assertGreater(len(whole), 2 * len(job))
                self.assertEqual(self.show(whole), whole)
                self.assertEqual(self.digest(job, SHORT), self.digest(whole, SHORT))

    def test_numbers_are_shown_with_few_digits(self):
        job = JOBS["clicks"].replace('"clicks.csv"', '"a 0.100000000000000001 \\" 0.250000 b.csv"')
        whole = self.show(job, "--set", "optimizer.learning_rate=0.1", "--set", "model.dense.regularization=1e-7")
        for line in ("regularization = 0.03\n", "learning_rate = 0.1\n", "initial_accumulator_value = 0.01\n", "decay = 1.0\n"):
            self.assertIn(line, whole)
        self.assertEqual(tomllib.loads(whole)["data"]["file"], 'a 0.100000000000000001 " 0.250000 b.csv')
        self.assertEqual(tomllib.loads(whole)["model"]["dense"]["regularization"], 1e-7)

    def test_numbers_in_texts_of_several_lines_stay(self):
        for name in ('a\n0.250000', 'a\n" 0.250000', "a\n' 0.250000", "a\n'' \\ 0.250000 '", 'a\n"" 0.250000 "', "a\n\\\" 0.250000 '",
                     '', "'", '"'):
            job = JOBS["clicks"].replace('"clicks.csv"', json.dumps(name + "b.csv"))
            whole = self.show(job, "--set", "optimizer.learning_rate=0.1")
            self.assertEqual(tomllib.loads(whole)["data"]["file"], name + "b.csv")
            self.assertIn("learning_rate = 0.1\n", whole)

    def test_showing_trains_nothing(self):
        out = self.folder / "nothing"
        self.show(JOBS["ratings"], "--out", out)
        self.assertFalse(out.exists())

    def test_every_kind_has_the_documents_numbers(self):
        def row(name):
            line = re.search(rf"^\| {name}.*$", DOCUMENT, re.MULTILINE).group()
            return [cell.strip(" `") for cell in line.split("|")[2:-1]]

        names = ["ratings", "clicks", "likes", "sessions", "text"]
        table = zip(names, row("`dim`, unless"), row("`initializer`; zeros"), row("`optimizer.rule`"),
                    row("`optimizer.learning_rate`"), row("`schedule.batch`"), row("`schedule.epochs`"),
                    row("`model.regularization`"))
        main = {"ratings": "user", "clicks": "vector", "likes": "user", "sessions": "bought", "text": "word"}
        for name, dim, first, rule, rate, batch, epochs, regularization in table:
            job = self.shown(JOBS[name])
            tables = job["tables"]
            table = tables[main[name]]
            self.assertEqual(table["dim"], int(dim), name)
            if name == "text":
                self.assertEqual(table["initializer"], {"kind": "uniform", "low": -0.005, "high": 0.005})
            else:
                self.assertEqual(table["initializer"], normal(float(first.removeprefix("normal, "))), name)
            self.assertEqual((job["optimizer"]["rule"], job["optimizer"]["learning_rate"]), (rule, float(rate)), name)
            self.assertEqual((job["schedule"]["batch"], job["schedule"]["epochs"]), (int(batch), int(epochs)), name)
            self.assertEqual(job["model"].get("regularization", 0), float(regularization or 0), name)

    def test_roles_are_those_of_the_ids(self):
        job = self.shown(JOBS["ratings"])
        self.assertEqual([job["model"][role] for role in ("user", "item", "user_bias", "item_bias")],
                         ["user", "item", "user_bias", "item_bias"])
        for bias in "user_bias", "item_bias":
            self.assertEqual(job["tables"][bias],
                             {**job["tables"][bias], "dim": 1, "initializer": {"kind": "zeros"}})
        self.assertEqual(job["optimizer"]["decay"], 0.95)
        clicks = self.shown(JOBS["clicks"])
        self.assertEqual((clicks["model"]["linear"], clicks["model"]["deep"], clicks["model"]["hidden"]),
                         (["weight"], ["vector"], [128, 64]))
        self.assertEqual((clicks["data"]["range"], clicks["tables"]["weight"]["dim"]), ([0, 1], 1))
        text = self.shown(JOBS["text"])
        self.assertEqual((text["ids"]["word"]["min_count"], text["schedule"]["rate"]), (5, "linear"))
        self.assertEqual(text["tables"]["context"]["initializer"], {"kind": "zeros"})

    def test_ids_of_other_names_are_taken_in_the_order_of_the_job(self):
        for ids in ('zoe.column = "user_id"\nabe.column = "movie_id"',
                    'zoe = { column = "user_id" }\nabe = { column = "movie_id" }'):
            renamed = re.sub(r'user.column.*\nitem.column.*', ids, JOBS["likes"])
            job = self.shown(renamed)
            self.assertEqual((job["model"]["user"], job["model"]["item"]), ("zoe", "abe"))
            self.assertEqual((job["data"]["user"], job["data"]["item"]), ("zoe", "abe"))
            self.digest(renamed, SHORT)
        sections = JOBS["ratings"].replace("[ids]\nuser.", "[ids.watcher]\n").replace("item.", "[ids.film]\n")
        self.assertEqual(self.shown(sections)["model"]["sides"], [])
        self.assertEqual(set(self.shown(sections)["tables"]), {"watcher", "film", "watcher_bias", "film_bias"})
        self.digest(sections, SHORT)

    def test_side_tables_have_roles(self):
        tags = '[ids.tag]\nfile = "tags.csv"\nkey = "what"\nof = "item"\ncolumn = "tags"\nkeys = "string"\nseparator = " "\n[model]'
        rated = self.shown(JOBS["ratings"].replace("[model]", tags))
        self.assertEqual(rated["model"]["sides"], ["tag"])
        self.digest(JOBS["ratings"].replace("[model]", tags), SHORT)
        keys = JOBS["sessions"].replace('"orders.csv"', '"likes.csv"').replace('time = "ordered_at"\n', "")
        keys = keys.replace('"customer"', '"user_id"').replace('{ column = "product", keys = "string" }',
                                                               '{ column = "movie_id" }')
        following = self.shown(keys.replace("[model]", tags))
        self.assertEqual([following["model"][role] for role in ("history_attributes", "attributes")],
                         ["bought_tag", "next_tag"])
        self.digest(keys.replace("[model]", tags), SHORT)

    def test_several_ids_of_clicks_have_two_tables_each(self):
        job = JOBS["clicks"].replace('"device", ', "").replace("[model]", '[ids.device]\ncolumn = "device"\n'
                                                               'keys = "string"\n[model]')
        model = self.shown(job)["model"]
        self.assertEqual(model["deep"], ["field_vector", "device_vector"])
        self.assertEqual(model["linear"], ["field_weight", "device_weight"])
        self.digest(job)

    def test_lists_need_no_ids(self):
        for kind in "pairwise", "next_item":
            job = f'[data]\nformat = "lists"\nfile = "lists.txt"\n[model]\nkind = "{kind}"\n'
            self.assertEqual(self.digest(job, SHORT), self.digest(self.show(job), SHORT))

    def test_what_a_job_says_stays(self):
        job = JOBS["ratings"] + ('dim = 8\nregularization = 0.5\n[optimizer]\nlearning_rate = 0.25\n[schedule]\n'
                                 'epochs = 2\n[tables.user_bias]\ninitializer = { kind = "constant", value = 1 }\n')
        whole = self.shown(job, "--set", "schedule.batch=32")
        self.assertEqual((whole["model"]["regularization"], whole["optimizer"]["learning_rate"]), (0.5, 0.25))
        self.assertEqual((whole["schedule"]["epochs"], whole["schedule"]["batch"]), (2, 32))
        self.assertEqual([whole["tables"][table]["dim"] for table in ("user", "item", "user_bias", "item_bias")],
                         [8, 8, 1, 1])
        self.assertEqual(whole["tables"]["user_bias"]["initializer"], {"kind": "constant", "value": 1.0})
        self.assertNotIn("dim", whole["model"])
        rules = {"sgd": 0.03, "adagrad": 0.05, "rowwise_adagrad": 0.05, "adam": 0.001}
        for rule, rate in rules.items():
            chosen = self.shown(JOBS["ratings"], "--set", f"optimizer.rule={rule}")["optimizer"]
            self.assertEqual(chosen["learning_rate"], rate)
            self.assertEqual(chosen.get("decay", 1), 0.95 if rule == "sgd" else 1)

    def test_a_whole_job_is_taken_as_it_is(self):
        whole = self.show(JOBS["ratings"])
        without = re.sub("regularization = .*\n|decay = .*\n", "", whole)
        self.assertEqual(self.shown(without)["model"]["regularization"], 0)
        self.assertEqual(self.shown(without)["optimizer"]["decay"], 1)

    def test_a_whole_job_says_what_it_has_other_than_its_kind(self):
        whole = self.show(JOBS["ratings"])
        said = ("model.regularization is 0, optimizer.decay is 1, since the job names all of its roles, tables, rule, rate, "
                "batch and epochs; other jobs of mf have 0.1, 0.95")
        lacking = re.sub("regularization = .*\n|decay = .*\n", "", whole)
        without = self.write(lacking)
        spelt = self.write(re.sub("(?<=rule = .)sgd", "SGD", lacking), "spelt.toml")
        self.assertIn(said, self.call("train", spelt, SHORT)[1])
        for job, says in ((without, True), (self.write(whole, "whole.toml"), False),
                          (self.write(JOBS["ratings"], "short.toml"), False)):
            code, out, err = self.call("train", job, SHORT)
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(said in out, says, out)
            if says:
                self.assertEqual(json.loads(self.call("train", job, SHORT, "--json")[1].splitlines()[0])["note"], said)

    def test_sections_in_one_line_are_the_same_job(self):
        short = """
model = { kind = "mf", dim = 8 }
split = { by = ["user", "item"] }
ids = { user = { column = "user_id" }, item = { column = "movie_id" } }
tables.user_bias = { initializer = { kind = "zeros" } }
data = { file = "ratings.csv", label = "rating", range = [1, 5] }
"""
        long = JOBS["ratings"] + 'dim = 8\n[split]\nby = ["user", "item"]\n[tables.user_bias]\ninitializer = { kind = "zeros" }\n'
        self.assertEqual(self.show(short), self.show(long))
        self.assertEqual(self.show(self.show(short)), self.show(short))
        self.assertEqual(self.digest(short, SHORT), self.digest(long, SHORT))

    def test_what_has_no_default_is_asked_for_by_its_line(self):
        for lacks, says in (('label = "rating"\n', "job.toml:1: data.label must be"),
                            ("range = [1, 5]\n", "job.toml:1: data.range must be"),
                            ('kind = "mf"\n', "job.toml:10: model.kind must be one of mf, ctr, next_item, pairwise, skipgram, got nothing")):
            code, _, err = self.call("train", "--show", self.write(JOBS["ratings"].replace(lacks, "")))
            self.assertEqual(code, 1)
            self.assertIn(says, err)
        code, _, err = self.call("train", self.write(JOBS["ratings"]), "--set", "optimizer.rule=ftrl")
        self.assertIn("optimizer.learning_rate must be", err)
        code, _, err = self.call("train", self.write(JOBS["ratings"] + "dim = 0\n"))
        self.assertEqual(code, 1)
        self.assertIn("job.toml:12: model.dim must be an integer from 1 to 4096, got 0", err)

    def test_a_short_job_resumes(self):
        out = self.folder / "resumed"
        job = self.write(JOBS["ratings"], "resumed.toml")
        self.assertEqual(self.call("train", job, "--out", out, SHORT)[0], 0)
        code, text, err = self.call("train", job, "--out", out, "--resume", "--set=schedule.epochs=2", "--json")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(json.loads(text.splitlines()[-1])["digest"],
                         self.digest(JOBS["ratings"], "--set=schedule.epochs=2"))
        code, text, _ = self.call("eval", out)
        self.assertEqual(code, 0)
        self.assertIn("rmse", text)

    # Sweeps.

    def sweep(self, *words, code=0):
        found, out, err = self.call("sweep", *words)
        self.assertEqual(found, code, err)
        return out if code == 0 else err

    def test_the_documented_sweep_tests_its_best_setting(self):
        self.write(JOBS["ratings"], "ratings.toml")
        words = re.search(r"^embertable sweep (.*--grid.*)$", DOCUMENT, re.MULTILINE).group(1).split()
        words = [str(self.folder / word) if word == "ratings.toml" else word.replace("/tmp/", f"{self.folder}/")
                 for word in words]
        out = self.sweep(*words, "--json")
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([e["event"] for e in events if e["event"] != "run"], ["start", "side_by_side", "ranked", "done"])
        runs = events[-2]["runs"]
        self.assertEqual(len(runs), 6)
        errors = [run["validation"]["rmse"] for run in runs]
        self.assertEqual(errors, sorted(errors))
        best = [f"--set={key}={value}" for key, value in runs[0]["set"].items()]
        job = JOBS["ratings"]
        self.assertEqual(self.digest(job, *best), runs[0]["digest"])
        self.assertEqual(self.digest(job, *best, "--set=split.train_on_validation=true"), events[-1]["digest"])
        self.assertEqual(set(events[-1]["test"]), {"rmse", "mae"})

        out = self.sweep(*words, "--resume", "--grid", "seed=1,2")
        self.assertIn("sweep of ratings: 12 runs, the best by validation rmse; 6 of them done before\n", out)  # seed 1
        self.assertRegex(out, r"\nbest: model.dim = \d+, model.regularization = 0\.\d+, seed = [12]\n")
        self.assertRegex(out, r"\ntrained again with the validation part, for 30 epochs\n  test rmse \d\.\d{4}\n")
        out = self.sweep(*words, "--resume")
        self.assertIn("6 runs, the best by validation rmse; 6 of them done before\n", out)
        self.assertIn(f"embertable predict {self.folder}/sweep/best FILE", out)

    def test_a_sweep_says_what_is_wrong(self):
        path = self.write(JOBS["ratings"], "ratings.toml")
        out = self.folder / "wrong"
        for words, said in [(("--grid", "model.dim=16..32"), "a random sweep draws from it"),
                            (("--grid", "split.train_on_validation=true,false"), "a sweep sets split.train_on_validation itself"),
                            (("--grid", "split={train_on_validation=true},{}"), "a sweep sets split.train_on_validation itself"),
                            (("--grid", "model.dim=16,32", "--set", "model.dim=8"), "--set model.dim=8: --grid tries values of model.dim"),
                            (("--grid", "model.dim=16,32", "--set", "model={kind=\"mf\"}"), "--grid tries values of model.dim"),
                            (("--grid", "model.dims=16,32"), "grid model.dims=16: model has no key 'dims'"),
                            (("--grid", "optimizer.learning_rate=1e30"), "no run of the sweep has a measure: the run diverges")]:
            self.assertIn(said, self.sweep(path, "--out", out, "--overwrite", *words, code=1))
        for words, said in [((), "--grid is required"),
                            (("--grid", "model.dim"), "--grid: a swept key must be KEY=VALUE,VALUE or KEY=LOW..HIGH, got 'model.dim'"),
                            (("--grid", "model.dim=2..1"), "--grid: model.dim: a range must rise, got 2..1"),
                            (("--grid", "model.dim=4,8", "--set", "seed"), "--set: must be KEY=VALUE, got 'seed'"),
                            (("--grid", "model.dim=4,8", "--skip-bad", "x"), "--skip-bad: must be a number of records")]:
            self.assertIn(said, self.sweep(path, "--out", out, *words, code=2))

    def test_draws_of_a_sweep_are_of_the_seed(self):
        path = self.write(JOBS["ratings"], "ratings.toml")
        words = [path, "--grid", "model.dim=4..64", "--grid", "optimizer.learning_rate=0.01..0.1", "--random", 3, SHORT,
                 "--no-test", "--json"]
        found = [[run["set"] for run in json.loads(self.sweep(*words, "--out", self.folder / name, "--seed", seed)
                                                   .splitlines()[-1])["runs"]]
                 for name, seed in (("a", 1), ("b", 1), ("c", 2))]
        self.assertEqual(found[0], found[1])
        self.assertNotEqual(found[0], found[2])


class ExampleJobs(unittest.TestCase):
    def test_each_shows_a_whole_job(self):
        for path in sorted((SOURCE / "examples/jobs").glob("*.toml")):
            with self.subTest(path.name):
                done = subprocess.run([PROGRAM, "train", "--show", path], capture_output=True, text=True, check=True)
                self.assertIn("epochs", tomllib.loads(done.stdout)["schedule"])

    def test_each_is_short(self):
        """Lines without comments: 12 for ratings, pairs and what comes next, 15 for clicks; those that show more have more."""
        most = {"adult": 19, "retail": 14, "criteo": 15, "diabetes": 15}
        for path in sorted((SOURCE / "examples/jobs").glob("*.toml")):
            lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
            self.assertLessEqual(len(lines), most.get(path.stem, 12), path.name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
