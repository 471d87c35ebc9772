"""What a run says of data and models that are not as their user thinks: a wrong label, an empty key, a repeated pair,
a worse model, a part without samples, a run that diverges.

Usage: job_words_test.py EMBERTABLE
"""

import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

from small_jobs import CTR, NEXT_ITEM, PAIRWISE, SKIPGRAM, write_small_jobs
from small_run import JOB as MF
from small_run import SmallRun

PROGRAM = sys.argv[1]

# Ratings whose users and items are texts, and clicks of which a user's key is one.
TEXT_MF = """
[data]
file = "texts.csv"
label = "rating"
range = [1, 5]
[ids.user]
column = "user"
keys = "string"
[ids.item]
column = "item"
keys = "string"
[tables.user]
dim = 4
initializer = { kind = "normal", stddev = 0.1 }
[tables.item]
dim = 4
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "mf"
user = "user"
item = "item"
[optimizer]
rule = "sgd"
learning_rate = 0.05
[schedule]
batch = 16
epochs = 2
"""
TEXT_CTR = (TEXT_MF.replace("range = [1, 5]", 'positive = ["5"]')
            .replace('kind = "mf"', 'kind = "ctr"')
            .replace('\nuser = "user"\nitem = "item"', '\ndeep = ["user", "item"]\nhidden = [4]'))


# Who orders what, as pairs.
ORDER_PAIRS = """
[data]
file = "orders.csv"
user = "customer"
item = "product"
time = "when"
[ids.customer]
column = "who"
keys = "string"
[ids.product]
column = "what"
keys = "string"
[model]
kind = "pairwise"
[schedule]
epochs = 2
"""


def bucket(key):
    """The part of a pair, by splitmix64."""
    key = (key + 0x9e3779b97f4a7c15) % 2**64
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9 % 2**64
    key = (key ^ key >> 27) * 0x94d049bb133111eb % 2**64
    return (key ^ key >> 31) % 10


class JobWords(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        SmallRun(cls.folder, PROGRAM)
        write_small_jobs(cls.folder)
        rows = [f"{'' if k % 10 == 0 else 'u' + str(k % 7)},i{k % 11},{1 + k % 5}\n" for k in range(200)]
        (cls.folder / "texts.csv").write_text("user,item,rating\n" + "".join(rows))

    def call(self, *words):
        """(exit code, stdout, stderr)"""
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def train(self, job, *options):
        path = self.folder / "job.toml"
        path.write_text(job)
        return self.call("train", path, "--data", self.folder, "--threads", 2, *options)

    def told(self, job, *options):
        code, out, err = self.train(job, *options)
        self.assertEqual((code, err), (0, ""))
        return out

    def refused(self, job, *options):
        code, _, err = self.train(job, *options)
        self.assertEqual(code, 1, err)
        return err

    # Labels.

    def test_a_label_text_that_never_occurs_is_refused(self):
        wrong = TEXT_CTR.replace('positive = ["5"]', 'positive = ["5", "five"]')
        self.assertIn("data.positive must name texts of the column 'rating', got \"five\", which it never has; it has "
                      '"1", "2", "3", "4"', self.refused(wrong))
        self.assertIn("data.negative must name texts of the column 'rating', got \"no\"",
                      self.refused(TEXT_CTR.replace('positive = ["5"]', 'negative = ["no"]')))

    def test_labels_that_are_all_equal_are_refused(self):
        only = '[data.where]\nrating = "is 5"\n[ids.user]'
        self.assertIn("the labels of column 'rating' must differ, got 5 in all 40 records",
                      self.refused(TEXT_MF.replace("[ids.user]", only)))
        self.assertIn("the labels of column 'rating' must differ, got 1 in all 40 records: the column has only \"5\"",
                      self.refused(TEXT_CTR.replace("[ids.user]", only)))

        self.assertIn('got 0 in all 160 records: the column has only "1", "2", "3", "4"',
                      self.refused(TEXT_CTR.replace('positive = ["5"]', 'negative = ["1", "2", "3", "4"]')
                                   .replace("[ids.user]", only.replace("is 5", "< 5"))))

    # Keys.

    def test_empty_keys_are_counted(self):
        for job in TEXT_MF, TEXT_CTR:
            self.assertIn("20 records have an empty user, which counts as a key like any other", self.told(job))
            start = json.loads(self.told(job, "--json").splitlines()[0])
            self.assertEqual((start["ids"]["user"]["empty"], start["ids"]["item"]["empty"]), (20, 0))
        (self.folder / "orders.csv").write_text((self.folder / "orders.csv").read_text() + "5,,1600\n6,,1700\n")
        try:
            self.assertIn("2 records have an empty product", self.told(NEXT_ITEM))
            self.assertIn("2 records have an empty product", self.told(ORDER_PAIRS))
        finally:
            write_small_jobs(self.folder)

    def test_where_leaves_records_out_of_every_model_of_records(self):
        where = '[data.where]\nuser = "filled"\n[ids.user]'
        for job in TEXT_MF, TEXT_CTR:
            out = self.told(job.replace("[ids.user]", where))
            self.assertNotIn("empty", out)
            trained, measured = map(int, re.search(r"(\d+) training samples, (\d+) validation", out).groups())
            self.assertLess(trained + measured, 180)
            self.assertIn('data.where.user must be "filled", "digit first"',
                          self.refused(job.replace("[ids.user]", where.replace("filled", "full"))))

    def test_where_leaves_records_out_of_users_items(self):
        for job in ORDER_PAIRS, NEXT_ITEM:
            all_of_them, some = (int(re.search(r"(\d+) training samples", self.told(job + where)).group(1))
                                 for where in ("", '[data.where]\nwhen = ["filled", "< 700"]\n'))
            self.assertLess(some, 0.6 * all_of_them)
            self.assertIn('data.where.when must be "filled", "digit first"', self.refused(job + '[data.where]\nwhen = "full"\n'))

    def test_missing_that_does_nothing_is_refused(self):
        for job in ORDER_PAIRS, NEXT_ITEM:
            self.assertIn("ids.customer has no key 'missing'",
                          self.refused(job.replace('column = "who"', 'column = "who"\nmissing = ""')))
        for job in TEXT_MF, TEXT_CTR:
            self.assertIn("ids.user.missing must be a text that counts as empty",
                          self.refused(job.replace('column = "user"', 'column = "user"\nmissing = ""')))

    # Pairs in two parts.

    def test_repeated_pairs_are_counted(self):
        repeat = r"\d+ of the \d+ validation samples repeat a pair that trains: the same user and item"
        self.assertRegex(self.told(TEXT_MF), repeat)
        self.assertNotIn("repeat", self.told(MF))
        self.assertNotIn("repeat", self.told(PAIRWISE))
        lines = (self.folder / "pairs.txt").read_text().splitlines()
        (self.folder / "again.txt").write_text("\n".join(" ".join(line.split()[:2]) for line in lines) + "\n")
        test = PAIRWISE.replace('file = "pairs.txt"', 'file = "pairs.txt"\ntest_file = "again.txt"')
        self.assertIn("60 of the 60 test samples repeat a pair that trains", self.told(test))
        self.assertRegex(self.told(NEXT_ITEM), repeat)

    # Figures in words.

    def test_a_model_worse_than_its_baseline_is_told_so(self):
        slow = ("--set", "optimizer.learning_rate=1e-9", "--set", "schedule.epochs=1")
        draw = random.Random(5)
        popular = [f"{user} {' '.join(map(str, [*draw.sample(range(12), 10), 12 + draw.randrange(38)]))}\n"
                   for user in range(60)]
        (self.folder / "popular.txt").write_text("".join(popular))
        orders = [f"{who},P{time % 4 if time % 5 else draw.randrange(30)},{time}\n"
                  for time in range(20) for who in range(70)]
        (self.folder / "fixed.csv").write_text("who,what,when\n" + "".join(orders))
        for job, baseline in ((MF, "global mean"), (PAIRWISE.replace("pairs.txt", "popular.txt"), "popularity"),
                              (NEXT_ITEM.replace("orders.csv", "fixed.csv"), "popularity"),
                              ('metrics = ["logloss"]' + CTR.replace("stddev = 0.1", "stddev = 3"), "constant")):
            self.assertIn(f'\nthe model is worse than the baseline "{baseline}": ', self.told(job, *slow))

    def test_a_model_that_overfits_is_told_its_best_epoch(self):
        out = self.told(CTR, "--set", "schedule.epochs=40")
        self.assertRegex(out, r"the model overfits: validation auc was best after epoch \d+, 0\.\d+, and is 0\.\d+ at "
                              r"the end; schedule\.patience keeps the best epoch\ndigest ")
        self.assertNotIn("overfits", self.told(CTR, "--set", "schedule.epochs=40", "--set", "schedule.patience=5"))

    def test_every_model_keeps_the_best_epoch_if_asked(self):
        epochs = ("--set", "schedule.epochs=8", "--set", "schedule.patience=8", "--set", "split.train_on_validation=false")
        for job in MF, CTR, PAIRWISE, ORDER_PAIRS, NEXT_ITEM, SKIPGRAM + "validation = 0.1\n":
            out = self.told(job, *epochs)
            best = int(re.search(r"\nthe tables are those after epoch (\d)\n", out).group(1))
            metric = re.findall(r"epoch +(\d)/8 .*?  validation [\w@]+ ([\d.]+)", out)
            self.assertEqual(len(metric), 8)
            self.assertRegex(out, rf"\n  \w+, dim \d+ +{re.escape(dict(metric)[str(best)])}\b")
            self.assertNotIn("overfits", out)

    def test_a_part_without_samples_has_no_measure(self):
        (self.folder / "test.csv").write_text("user,item,rating\nu1,i1,3\n")
        empty = '[split]\ntest_file = "test.csv"\nvalidation = 0\n'
        trained = [(user, item) for user in range(9) for item in range(9) if bucket(user << 32 | item) > 1]
        (self.folder / "trained.txt").write_text("".join(f"{user} {item}\n" for user, item in trained))
        # A user of next_item who trains has items in the other parts too.
        for job, metric in ((TEXT_MF + empty, "rmse"), (TEXT_CTR + empty, "auc"),
                            (PAIRWISE.replace("pairs.txt", "trained.txt").replace("train_on_validation = true", ""),
                             "ndcg@20"),
                            (SKIPGRAM.replace("test = 0.1\ntrain_on_validation = true", "validation = 0"), "loss")):
            self.assertRegex(self.told(job), r"\n  \w+, dim \d+ +none")
            done = json.loads(self.told(job, "--json").splitlines()[-1])
            self.assertIsNone(done["validation"][metric])

    def test_a_run_that_diverges_names_its_first_step(self):
        wild = ("--set", "optimizer.learning_rate=1e38", "--set", "optimizer.rule=sgd", "--set", "schedule.epochs=4")
        told = r"embertable: the run diverges: the loss must be finite, got (nan|inf) in step \d+, of epoch \d"
        for job in MF, CTR, PAIRWISE, NEXT_ITEM, SKIPGRAM:
            self.assertRegex(self.refused(job, *wild), told)

    # Broken records.

    def test_broken_records_are_summed_up(self):
        rows = (self.folder / "texts.csv").read_text().splitlines()
        rows[4] = "u1,i1,x"
        rows[8] = "u1,i1,y"
        rows[9] = "u1,i1"
        (self.folder / "broken.csv").write_text("\n".join(rows) + "\n")
        job = TEXT_MF.replace("texts.csv", "broken.csv")
        out = self.told(job, "--skip-bad", 3)
        self.assertIn("  3 broken records are left out\n", out)
        self.assertIn(f"        2: 'rating' must be a number; the first is {self.folder}/broken.csv:5:7\n", out)
        self.assertIn("        1: a record must have 3 fields as the first line has; the first is ", out)
        start = json.loads(self.told(job, "--skip-bad", "2%", "--json").splitlines()[0])
        self.assertEqual(start["left_out"], 3)
        self.assertEqual([reason["count"] for reason in start["broken"]], [2, 1])
        self.assertIn("broken.csv:5:7: 'rating' must be a number; of 200 records 3 are broken, more than 1%",
                      self.refused(job, "--skip-bad", "1%"))
        run = self.folder / "broken"
        for cached in False, True:
            out = self.told(job, "--skip-bad", "2%", "--out", run, *(["--resume"] if cached else []))
            self.assertIn("  3 broken records are left out\n", out)
        for path in (self.folder / "broken.cache").iterdir():
            path.unlink()
        code, out, err = self.call("eval", run)
        self.assertEqual((code, err), (0, ""))
        code, _, err = self.call("eval", run, "--skip-bad", 2)
        self.assertIn("a record must have 3 fields", err)
        code, _, err = self.call("eval", run, "--data", self.folder / "none")
        self.assertIn("cannot open", err)

    # The best epoch.

    def test_commands_take_the_best_epoch_and_say_so(self):
        run = self.folder / "best"
        out = self.told(MF.replace("train_on_validation = true", ""), "--out", run, "--set", "schedule.epochs=60",
                        "--set", "schedule.patience=2", "--set", "optimizer.learning_rate=0.5")
        epoch = int(re.search(r"the tables are those after epoch (\d+)", out).group(1))
        (self.folder / "new.csv").write_text("user,item\n1,1\n")
        for words in (("eval", run), ("predict", run, self.folder / "new.csv"),
                      ("neighbors", run, "--table", "item", "--key", 1),
                      ("lookup", run, "--table", "item", "--key", 1),
                      ("export", run, "--format", "npy", "--out", self.folder / "exported")):
            code, mine, err = self.call(*words)
            self.assertEqual(code, 0, err)
            self.assertIn(f"embertable: takes the run's best epoch, {epoch}: {run}/best/step_", err)
            if words[0] in ("neighbors", "lookup"):
                self.assertEqual(self.call(words[0], run / "best", *words[2:])[1], mine)
        code, _, err = self.call("eval", next(run.glob("step_*")))
        self.assertEqual((code, err), (0, ""))
        code, digest, err = self.call("digest", run)
        self.assertIn(f"that of epoch {epoch}, the best, is in {run}/best", err)
        next((run / "best").glob("step_*/manifest.json")).write_text("{")
        self.assertEqual(self.call("digest", run)[:2], (0, digest))  # it is of the latest step
        self.assertIn("the best epoch cannot be read", self.call("digest", run)[2])

    def test_a_model_without_patience_has_no_best_epoch(self):
        run = self.folder / "plain"
        self.told(MF, "--out", run)
        self.assertEqual(self.call("eval", run)[2], "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
