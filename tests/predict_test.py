"""What `embertable predict` and `neighbors` give of a saved run of each model.

Usage: predict_test.py EMBERTABLE
"""

import csv
import io
import json
import os
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

from small_jobs import JOBS, write_small_jobs
from small_run import SmallRun

PROGRAM = sys.argv[1]


def call(*words, given=None):
    """(exit code, stdout, stderr)"""
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, input=given)
    return done.returncode, done.stdout, done.stderr


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


class Predict(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.data = cls.folder / "data"
        cls.data.mkdir()
        cls.done = {"mf": SmallRun(cls.data, PROGRAM).train(cls.folder / "mf")[-1]}
        write_small_jobs(cls.data)
        for model in JOBS:
            code, out, err = call("train", cls.data / f"{model}.toml", "--data", cls.data, "--out", cls.folder / model,
                                  "--threads", 2, "--json")
            assert code == 0, err
            cls.done[model] = json.loads(out.splitlines()[-1])

    def predicted(self, model, text, *options):
        """(lines of the CSV, what is reported)"""
        code, out, err = call("predict", self.folder / model, "-", *options, given=text)
        self.assertEqual(code, 0, err)
        return table(out), err

    def test_ratings_are_scored_in_their_order(self):
        text = "item,user\n7,3\n9999,3\n7,4\n"
        lines, report = self.predicted("mf", text)
        self.assertEqual([(line["line"], line["unseen"]) for line in lines], [("2", "0"), ("3", "1"), ("4", "0")])
        for line in lines:
            self.assertTrue(1 <= float(line["prediction"]) <= 5)
        self.assertRegex(report, r"3 rows scored after step \d+ in .* rows/s\n  1 row with keys that have no row of their own: 1 of 'item'\n$")
        self.assertEqual(self.predicted("mf", text, "--threads", 3)[0], lines)

    def test_keys_and_other_columns_stand_beside_the_scores(self):
        text = "shelf,item,user\n\"top, left\",7,3\n,9999,4\n"
        lines, _ = self.predicted("mf", text)
        self.assertEqual(list(lines[0]), ["line", "item", "user", "prediction", "unseen"])
        self.assertEqual([(line["item"], line["user"]) for line in lines], [("7", "3"), ("9999", "4")])
        lines, _ = self.predicted("mf", text, "--no-ids", "--copy", "shelf,2")
        self.assertEqual(list(lines[0]), ["line", "shelf", "item", "prediction", "unseen"])
        self.assertEqual([line["shelf"] for line in lines], ["top, left", ""])
        _, out, _ = call("predict", self.folder / "mf", "-", "--json", given=text)
        self.assertEqual([json.loads(line)["item"] for line in out.splitlines()], [7, 9999])
        lines, _ = self.predicted("ctr", "1\ta3\tb1\t7\n", "--copy", "2")
        self.assertEqual((list(lines[0]), lines[0]["2"]), (["line", "2", "probability", "logit", "unseen"], "a3"))

    def test_columns_of_scores_have_different_names(self):
        for name, words in (("prediction", ["--copy", "prediction"]), ("line", ["--copy", "line"]), ("unseen", ["--copy", "3"])):
            code, out, err = call("predict", self.folder / "mf", "-", *words, given=f"item,user,{name}\n7,3,1\n")
            self.assertEqual((code, out), (1, ""))
            self.assertIn(f"columns of scores must have different names, got '{name}' twice; ids and copied columns", err)

    def test_the_rows_are_not_replaced_by_their_scores(self):
        path = self.folder / "rows.csv"
        path.write_text("item,user\n7,3\n")
        os.link(path, self.folder / "other.csv")
        for output in (path, self.folder / "other.csv"):
            code, _, err = call("predict", self.folder / "mf", path, "--output", output)
            self.assertEqual(code, 1)
            self.assertIn(f"--output must not be the rows, got '{output}'", err)
        self.assertEqual(path.read_text(), "item,user\n7,3\n")
        os.remove(self.folder / "other.csv")

    def test_a_share_of_the_rows_may_be_broken(self):
        text = "item,user\n7,3\n7,x\n7,4\n7,5\n"
        lines, report = self.predicted("mf", text, "--skip-bad", "25%")
        self.assertEqual(len(lines), 3)
        self.assertIn("1 broken line left out", report)
        for model, rows in (("mf", text), ("pairwise", "5\n9 1 x\n6\n"), ("next_item", "who,what,when\n1,P3,5\n1,P4,x\n")):
            code, _, err = call("predict", self.folder / model, "-", "--skip-bad", "20%", given=rows)
            self.assertEqual(code, 1)
            self.assertRegex(err, r"of \d records 1 are broken, more than 20%")

    def test_ratings_rank_the_items_that_users_lack(self):
        lines, report = self.predicted("mf", "user\n3\n9999\n", "--k", 4)
        self.assertEqual([(line["user"], line["rank"]) for line in lines],
                         [(user, str(rank)) for user in ("3", "9999") for rank in range(1, 5)])
        self.assertEqual([line["basis"] for line in lines], ["user"] * 4 + ["item"] * 4)
        for user in "3", "9999":
            scores = [float(line["score"]) for line in lines if line["user"] == user]
            self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertRegex(report, r"2 rows scored after step \d+ in .*\n  1 row with keys .* 1 of 'user'\n$")
        _, out, _ = call("predict", self.folder / "mf", "-", "--json", "--k", 1, given="user\n03\n")
        (line,) = map(json.loads, out.splitlines())
        self.assertEqual((line["user"], line["item"]), (3, int(lines[0]["item"])))
        best = lines[4]["item"]
        without, _ = self.predicted("mf", f"user,item\n9999,{best}\n", "--k", 4)
        self.assertEqual([line["item"] for line in without][:3], [line["item"] for line in lines[5:]])

    def test_scores_go_to_a_file(self):
        (self.folder / "rows.csv").write_text("item,user\n7,3\n7,4\n")
        output = self.folder / "scores.csv"
        code, out, err = call("predict", self.folder / "mf", self.folder / "rows.csv", "--output", output, "--json")
        self.assertEqual((code, err), (0, ""))
        report = json.loads(out)
        self.assertEqual((report["rows"], report["rows_with_unseen"], report["unseen"], report["model"]),
                         (2, 0, {"item": 0, "user": 0}, "mf"))
        self.assertEqual([line["line"] for line in table(output.read_text())], ["2", "3"])
        before = output.read_text()
        (self.folder / "rows.csv").write_text("item,user\n7,3\n7,none\n")
        code, _, err = call("predict", self.folder / "mf", self.folder / "rows.csv", "--output", output)
        self.assertEqual(code, 1)
        self.assertIn("rows.csv:3:3: 'user' must be an integer of 64 bits, or any text with keys = \"string\", got 'none'", err)
        self.assertEqual(output.read_text(), before)  # until there is another whole one
        self.assertEqual(list(self.folder.glob("scores.csv.*")), [])

    def test_links_beside_the_output_are_not_followed(self):
        (self.folder / "one.csv").write_text("item,user\n7,3\n")
        victim, output = self.folder / "victim", self.folder / "linked.csv"
        victim.write_text("kept")
        (self.folder / "linked.csv.part").symlink_to(victim)
        output.symlink_to(victim)
        code, _, err = call("predict", self.folder / "mf", self.folder / "one.csv", "--output", output)
        self.assertEqual(code, 0, err)
        self.assertEqual(victim.read_text(), "kept")
        self.assertFalse(output.is_symlink())
        self.assertEqual([line["line"] for line in table(output.read_text())], ["2"])

    def test_an_output_that_names_a_descriptor_is_written_not_replaced(self):
        (self.folder / "one.csv").write_text("item,user\n7,3\n")
        words = "predict", self.folder / "mf", self.folder / "one.csv"
        expected = call(*words)[1]
        for number, name in (1, "standard"), (2, "errors"):
            link, file = self.folder / f"{name}.link", self.folder / f"{name}.csv"
            link.symlink_to(f"/proc/self/fd/{number}")
            with file.open("w") as to:
                streams = {"stdout": to} if number == 1 else {"stderr": to, "stdout": subprocess.DEVNULL}
                subprocess.run([PROGRAM, *map(str, words), "--output", str(link)], check=True, **streams)
            self.assertTrue(link.is_symlink())
            self.assertEqual(file.read_text(), expected)

    def test_clicks_have_the_log_loss_that_eval_measures(self):
        _, out, _ = call("eval", self.folder / "ctr", "--data", self.data, "--part", "training", "--json")
        training = json.loads(out)
        text = (self.data / "clicks.tsv").read_text()
        lines, _ = self.predicted("ctr", text)
        labels = [int(line.split("\t")[0]) for line in text.splitlines()]
        self.assertEqual(len(lines), len(labels))
        kept = [i for i in range(len(labels)) if bucket(i) > 1]
        self.assertEqual(len(kept), training["samples"])
        loss = -sum(math.log(float(lines[i]["probability"]) if labels[i] else 1 - float(lines[i]["probability"]))
                    for i in kept) / len(kept)
        self.assertAlmostEqual(loss, training["logloss"], places=6)
        bare = "".join(line.split("\t", 1)[1] for line in text.splitlines(keepends=True))
        self.assertEqual(self.predicted("ctr", bare, "--no-label")[0], lines)
        code, _, err = call("predict", self.folder / "mf", "-", "--no-label", given="user,item\n1,2\n")
        self.assertEqual(code, 1)
        self.assertIn("--no-label must be of a job with header = false: a header shows whether the label's column is there", err)

    def test_what_lines_of_items_do_not_have_is_refused(self):
        of_records = " must be of scores of records: "
        for model, rows, words in [("mf", "user\n3\n", ["--k", "3"]), ("pairwise", (self.data / "pairs.txt").read_text(), [])]:
            for option in ["--no-ids", "--no-label", "--copy=1"]:
                code, out, err = call("predict", self.folder / model, "-", *words, option, given=rows)
                self.assertEqual((code, out), (1, ""))
                self.assertIn(option.removesuffix("=1") + of_records, err)
            self.assertEqual(call("predict", self.folder / model, "-", *words, given=rows)[0], 0)

    def test_hashed_keys_are_scored_without_a_vocabulary(self):
        job = self.folder / "hashed.toml"
        job.write_text(JOBS["ctr"].replace("min_count = 2", "hash = 50"))
        words = ["train", job, "--data", self.data, "--out", self.folder / "hashed"]
        code, out, _ = call(*words)
        self.assertEqual(code, 0)
        self.assertRegex(out, r"\n  field +hashed into 50 rows\n")
        lines, report = self.predicted("hashed", "1\ta3\tb1\t7\n0\tnew\tnew\t7\n")
        self.assertEqual([line["unseen"] for line in lines], ["0", "0"])
        self.assertNotIn("no row of their own", report)

    def test_scores_can_be_json(self):
        code, out, err = call("predict", self.folder / "next_item", "-", "--json", "--k", 2,
                              given="who,what,when\n1,P3,5\n1,P4,6\n")
        self.assertEqual(code, 0)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([(line["customer"], line["rank"], line["basis"]) for line in lines],
                         [("1", 1, "history"), ("1", 2, "history")])
        self.assertGreaterEqual(lines[0]["score"], lines[1]["score"])
        self.assertRegex(lines[0]["name"], r"^(red|blue) thing \d+$")
        self.assertEqual(json.loads(err)["rows"], 1)

    def test_items_that_a_user_has_are_left_out(self):
        pairs = dict(line.split(" ", 1) for line in (self.data / "pairs.txt").read_text().splitlines())
        lines, _ = self.predicted("pairwise", "5\n9 1 2\n", "--k", 50)
        given = {user: {line["place"] for line in lines if line["user"] == user} for user in ("5", "9")}
        missing = set(map(str, range(50))) - given["5"]
        self.assertLessEqual(missing, set(pairs["5"].split()))  # and those of the test part stay
        self.assertGreaterEqual(len(missing), 8)
        self.assertFalse(given["9"] & {"1", "2"})
        self.assertEqual([line["rank"] for line in lines if line["user"] == "5"],
                         [str(i + 1) for i in range(len(given["5"]))])

    def test_says_what_is_wrong(self):
        (self.folder / "some.csv").write_text("item,usr\n1,2\n")
        for words, code, said in [
                ([self.folder / "none", "x"], 1, "there is no checkpoint"),
                ([self.folder / "mf", self.folder / "none.csv"], 1, "none.csv': cannot open"),
                ([self.folder / "mf", self.folder / "some.csv"], 1, "has no column 'user'; the nearest is 'usr'"),
                ([self.folder / "ctr", self.data / "clicks.tsv", "--k", "3"], 1, "must be for a model that ranks them"),
                ([self.folder / "pairwise", self.data / "pairs.txt", "--copy", "1"], 1, "must be of scores of records"),
                ([self.folder / "pairwise", self.data / "pairs.txt", "--k", "0"], 2, "--k"),
                ([self.folder / "skipgram", self.data / "text.txt"], 1, "`embertable neighbors` gives the words"),
                ([self.folder / "mf"], 2, "FILE is required")]:
            found, out, err = call("predict", *words)
            self.assertEqual((found, out), (code, ""), err)
            self.assertIn(said, err)

    def test_every_model_has_neighbors(self):
        for model, name, words in [("mf", "item", ["--key", "7"]), ("mf", "tag", ["--key", "t1"]),
                                   ("ctr", "vector", ["--key", "2=a3"]), ("ctr", "vector", ["--key", "4"]),
                                   ("pairwise", "user", ["--key", "5"]), ("pairwise", "place", ["--key", "30"]),
                                   ("next_item", "bought", ["--name", "blue thing 4"]),
                                   ("next_item", "next", ["--key", "P3"]), ("next_item", "next_word", ["--key", "red"]),
                                   ("skipgram", "word", ["--key", "seven"])]:
            with self.subTest(model=model, table=name):
                words = ["neighbors", self.folder / model, "--table", name, *words, "--k", 3]
                code, out, err = call(*words, "--json")
                self.assertEqual(code, 0, err)
                of, *near = [json.loads(line) for line in out.splitlines()]
                self.assertEqual(of["table"], name)
                self.assertEqual(len(near), 2 if name == "tag" else 3)  # there are three tags
                self.assertNotIn(of["key"], [one["key"] for one in near])
                cosines = [one["cosine"] for one in near]
                self.assertEqual(cosines, sorted(cosines, reverse=True))
                self.assertEqual("name" in near[0], model == "next_item" and name != "next_word" or name == "item")
                lines = call(*words)[1].splitlines()
                self.assertEqual(len(lines), 1 + len(near))
                for one, line in zip([of, *near], lines):
                    self.assertEqual(line, line.rstrip())
                    if not one["key"].isdigit():
                        self.assertTrue(line[8:].startswith(one["key"]), line)  # texts begin below each other


def bucket(record):
    """Of the split: 0 is the test part, 1 the validation part."""
    x = (record + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return (x ^ (x >> 31)) % 10


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
