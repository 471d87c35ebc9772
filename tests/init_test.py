"""`embertable init` on files as people have them: what it sees, the job that it writes, and that the job trains.

Usage: init_test.py EMBERTABLE
"""

import gzip
import json
import os
import pathlib
import pty
import random
import subprocess
import sys
import tempfile
import tomllib
import unittest

PROGRAM = sys.argv[1]


class Init(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.chance = random.Random(3)

    def write(self, name, lines):
        text = "\n".join(lines) + "\n"
        path = self.folder / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    def call(self, *words, **options):
        done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
        return done.returncode, done.stdout, done.stderr

    def init(self, path, *options):
        code, out, err = self.call("init", path, *options)
        self.assertEqual((code, err), (0, ""))
        return out

    def refused(self, path, *options):
        code, _, err = self.call("init", path, *options)
        self.assertEqual(code, 1)
        return err

    def job(self, name="data.toml"):
        return tomllib.loads((self.folder / name).read_text())

    def trains(self, name="data.toml", *options):
        code, out, err = self.call("train", self.folder / name, "--json", "--set", "schedule.epochs=1", *options)
        self.assertEqual((code, err), (0, ""))
        return json.loads(out.splitlines()[-1])

    def ratings(self):
        return [(self.chance.randrange(40), self.chance.randrange(30), self.chance.choice("12345")) for _ in range(600)]

    def test_ratings(self):
        path = self.write("data.csv", ["userId,movieId,rating", *(f"{u},{i},{r}" for u, i, r in self.ratings())])
        out = self.init(path)
        self.assertIn("600 records, fields between ',', names in the first line", out)
        self.assertIn("rating                 integers, 5 different, 1 to 5", out)
        self.assertIn(f"embertable train {self.folder / 'data.toml'} --out RUN\n", out)
        job = self.job()
        self.assertEqual(job["model"], {"kind": "mf"})
        self.assertEqual(job["data"], {"file": "data.csv", "label": "rating", "range": [1, 5]})
        self.assertEqual(job["ids"], {"user": {"column": "userId"}, "item": {"column": "movieId"}})
        self.assertIn("rmse", self.trains()["validation"])
        self.assertIn("--force replaces it", self.refused(path))
        self.assertIn("--out must not be the data", self.refused(path, "--out", path, "--force"))
        pipe = self.folder / "pipe"  # as /dev/stdout is no file that a new one may replace
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.init(path, "--out", pipe, "--force")
        self.assertEqual(tomllib.loads(os.read(reader, 1 << 16).decode()), job)
        os.close(reader)
        self.assertTrue(pipe.is_fifo())
        self.init(path, "--force")

    def test_a_column_that_is_called_as_a_range_is_a_number(self):
        path = self.write("data.csv", ["label,2-3,c", *(f"{int(r) % 2},{u % 5},{i % 5}" for u, i, r in self.ratings())])
        self.assertIn("2                      called '2-3' in the header, integers, 5 different", self.init(path, "--model", "ctr"))
        self.assertEqual(self.job()["ids"]["field"]["columns"], [2, "c"])
        self.trains()

    def test_columns_that_share_a_name_are_numbers(self):
        path = self.write("data.csv", ["id,id,rating", *(f"{u},{i},{r}" for u, i, r in self.ratings())])
        out = self.init(path, "--user", "1", "--item", "2")
        self.assertIn("2                      called 'id' in the header, integers, 30 different", out)
        self.assertEqual(self.job()["ids"], {"user": {"column": 1}, "item": {"column": 2}})
        self.trains("data.toml", "--out", self.folder / "run")
        code, out, err = self.call("predict", self.folder / "run", path)
        self.assertEqual((code, out.splitlines()[0]), (0, "line,1,2,prediction,unseen"), err)
        self.init(self.write("data.csv", ["id,id,rating,n", *(f"{u},{i},{int(r) % 2},{u % 7}" for u, i, r in self.ratings())]),
                  "--model", "ctr", "--label", "3", "--force")
        self.assertEqual(self.job()["data"]["label"], "rating")
        self.assertEqual(self.job()["ids"]["field"]["columns"], [1, 2, "n"])
        self.trains()

    def test_columns_are_given_by_name_or_number(self):
        rows = [f"{u},{i},{r}" for u, i, r in self.ratings()]
        path = self.write("data.csv", ["a,b,c", *rows])
        self.init(path, "--model", "mf", "--label", "3", "--user", "1", "--item", "b")
        self.assertEqual(self.job()["data"]["label"], "c")
        self.assertEqual(self.job()["ids"], {"user": {"column": "a"}, "item": {"column": "b"}})
        self.trains()
        for words, said in [(("--label", "4", "--user", "1", "--item", "2"), f"--label must be a column of '{path}', got '4'"),
                            (("--label", "0", "--user", "1", "--item", "2"), f"--label must be a column of '{path}', got '0'"),
                            (("--label", "c", "--user", "1", "--item", "a"),
                             f"--user and --item must be different columns of '{path}', got 'a' for both"),
                            (("--label", "b", "--user", "1", "--item", "2"),
                             f"--label and --item must be different columns of '{path}', got 'b' for both")]:
            self.assertIn(said, self.refused(path, "--model", "mf", "--force", *words))

    def test_a_name_with_an_equals_sign_is_left_out(self):
        path = self.write("data.csv", ["a=b,c,label", *(f"{u % 5},{i % 5},{int(r) % 2}" for u, i, r in self.ratings())])
        self.init(path, "--model", "ctr")
        self.assertEqual(self.job()["ids"]["field"]["columns"], ["c"])
        self.assertIn("# left out: a=b: keys of columns have no '=' in the column's name", (self.folder / "data.toml").read_text())
        self.trains()

    def test_decimal_commas_are_seen(self):
        rows = [f"{u};{i};{r},{k % 10}" for k, (u, i, r) in enumerate(self.ratings())]
        path = self.write("data.csv", ["user;item;rating", *rows])
        self.assertIn("--label must be a column of numbers, got 'rating': numbers with a decimal comma, which count as texts",
                      self.refused(path, "--model", "mf"))
        self.assertIn("rating                 numbers with a decimal comma, which count as texts, 50 different",
                      self.call("init", path, "--model", "pairwise")[1])

    def test_a_comma_is_called_decimal_only_where_it_is(self):
        """"1,234" may be either number; "12,34" and "0,123" have no thousands, "1,234,567" has no decimals."""
        for texts, said in ((["1,234", "5,678", "9,012"], "a comma, decimal or between thousands"),
                            (["1,234", "12,34", "0,5"], "a decimal comma"),
                            (["1,234", "0,123", "-7,890"], "a decimal comma"),
                            (["1,234", "1234,567", "7,890"], "a decimal comma"),
                            (["1,234", "1,234,567", "-89,012"], "commas between thousands"),
                            (["12,34", "1,234,567", "0,5"], "a comma, decimal or between thousands")):
            rows = [f"{u};{i};{texts[k % 3]}" for k, (u, i, _) in enumerate(self.ratings())]
            out = self.call("init", self.write("data.csv", ["user;item;price", *rows]), "--model", "pairwise", "--force")[1]
            self.assertIn(f"price                  numbers with {said}, which count as texts, 3 different", out)
        for texts in (["1,23,456", "a,b", "1,"], [",5", "1,,2", "x"]):
            rows = [f"{u};{i};{texts[k % 3]}" for k, (u, i, _) in enumerate(self.ratings())]
            out = self.call("init", self.write("data.csv", ["user;item;price", *rows]), "--model", "pairwise", "--force")[1]
            self.assertIn("price                  texts, 3 different", out)

    def test_a_messy_export(self):
        """Semicolons, quotes, blanks in names, ids as floats, empty fields and texts among the numbers, compressed."""
        lines = [f'{u}.0;"article ""{i}""; new";{"" if k % 50 == 0 else "N/A" if k % 97 == 0 else r}'
                 for k, (u, i, r) in enumerate(self.ratings())]
        path = self.write("data.csv.gz", ["Customer ID;Product;Star Rating", *lines])
        out = self.init(path)
        self.assertIn("Customer ID            whole numbers written with a point, 40 different", out)
        self.assertIn("12 empty", out)
        job = self.job()
        self.assertEqual(job["data"]["field_separator"], ";")
        self.assertEqual(job["data"]["where"], {"Star Rating": "filled"})
        self.assertEqual(job["ids"]["user"], {"column": "Customer ID", "keys": "string"})
        self.assertEqual(job["ids"]["item"], {"column": "Product", "keys": "string"})
        command = out.splitlines()[-1].split()
        self.assertIn("--skip-bad", command)
        self.trains("data.toml", *command[-2:])

        lines = [f"{u},{i},{'NA' if k % 3 == 0 else r}" for k, (u, i, r) in enumerate(self.ratings())]
        command = self.init(self.write("data.csv", ["user,item,rating", *lines]), "--force").splitlines()[-1].split()
        self.assertEqual(self.job()["model"], {"kind": "mf"})
        self.trains("data.toml", *command[-2:])

    def test_a_popular_item_has_a_batch_that_does_not_diverge(self):
        for share, batch in ((0.05, 256), (0.3, 32)):
            lines = ["user,item,rating"]
            for k in range(20_000):
                lines.append(f"{self.chance.randrange(2_000)},{0 if self.chance.random() < share else k},{1 + k % 5}")
            self.init(self.write("data.csv", lines), "--force")
            self.assertIn(self.job()["schedule"]["batch"], (batch, batch // 2))  # a share by chance
            measured = self.trains("data.toml", "--set", "schedule.epochs=6")
            self.assertLess(measured["validation"]["rmse"], 1.6)
            code, _, err = self.call("train", self.folder / "data.toml", "--set", "schedule.batch=2048")
            self.assertEqual(code, 1)
            self.assertIn("the run diverges", err)

        lines = ["user,item,rating"]  # most records have no rating, and are not counted
        for k in range(60_000):
            lines.append(f"{self.chance.randrange(2_000)},{k if k % 20 or self.chance.random() > 0.3 else 0},"
                         f"{'' if k % 20 else 1 + k // 20 % 5}")
        self.init(self.write("data.csv", lines), "--force")
        self.assertIn(self.job()["schedule"]["batch"], (32, 64))
        self.assertIn(" batch: one item has ", (self.folder / "data.toml").read_text())
        self.trains("data.toml", "--set", "schedule.epochs=6")

    def test_quotes_around_every_field(self):
        for separator, name in [(";", "semicolon.csv"), ("\t", "tab.tsv"), ("|", "bar.csv"), (",", "comma.csv")]:
            lines = [("User-ID", "ISBN", "Book-Rating"), *self.ratings()]
            self.init(self.write(name, [separator.join(f'"{field}"' for field in line) for line in lines]))
            job = self.job(pathlib.Path(name).stem + ".toml")
            self.assertEqual(job["data"].get("field_separator", ","), separator)
            self.assertEqual((job["data"]["label"], job["ids"]["user"]), ("Book-Rating", {"column": "User-ID"}))

    def test_a_file_may_have_any_name(self):
        lines = ["user,item,rating", *(f"{u},{i},{r}" for u, i, r in self.ratings())]
        self.init(self.write('a "b"\n\\c = 1.csv', lines), "--out", self.folder / "data.toml")
        self.assertEqual(self.job()["data"]["file"], 'a "b"\n\\c = 1.csv')
        self.trains()

    def test_clicks(self):
        lines = [f"{k},{'yes' if self.chance.random() < 0.3 else 'no'}\t{self.chance.choice('abc')}\t"
                 f"{self.chance.randrange(1000)}\tsame\t2024-01-0{1 + k % 9}T10:00:00Z".replace(",", "\t") for k in range(400)]
        out = self.init(self.write("data.tsv", ["request_id\tclicked\tdevice\tage\tversion\tat", *lines]))
        self.assertIn("fields between tabs", out)
        job = self.job()
        self.assertEqual(job["model"], {"kind": "ctr"})
        self.assertEqual((job["data"]["label"], job["data"]["positive"]), ("clicked", ["yes"]))
        self.assertEqual((job["ids"]["field"]["columns"], job["ids"]["field"]["buckets"]), (["device", "age"], ["age"]))
        text = (self.folder / "data.toml").read_text()
        for column in "request_id", "version", "at":
            self.assertIn(f"# left out: {column}: ", text)
        self.assertIn("auc", self.trains()["validation"])

    def test_lists_of_keys_are_seen(self):
        def line(k):
            tags = "|".join(self.chance.choice("abcde") for _ in range(self.chance.randrange(5)))
            seen = ";".join(str(self.chance.randrange(30)) for _ in range(1 + self.chance.randrange(4)))
            genres = ",".join(self.chance.sample(["Drama", "War", "Comedy", "Sci Fi"], 2))
            return f'{k % 2},{tags},{seen},"{genres}","Last{k % 9}, First{k % 7}",{k % 3}'
        path = self.write("data.csv", ["clicked,tags,seen items,genres,name,device", *(line(k) for k in range(400))])
        out = self.init(path)
        self.assertIn("tags                   lists with '|' between their keys, ", out)
        ids = self.job()["ids"]
        self.assertEqual(ids["field"]["columns"], ["name", "device"])
        del ids["field"]
        self.assertEqual(ids, {"tags": {"column": "tags", "separator": "|", "keys": "string", "min_count": 2},
                               "list2": {"column": "seen items", "separator": ";", "min_count": 2},
                               "genres": {"column": "genres", "separator": ",", "keys": "string", "min_count": 2}})
        self.assertIn("auc", self.trains()["validation"])

    def test_ids_of_a_list_have_a_name_that_no_column_has(self):
        lines = [f"{k % 2},{k % 3}|{k % 5},{k % 7};{k % 4}" for k in range(400)]
        self.init(self.write("data.csv", ["clicked,list2,seen items", *lines]))
        self.assertEqual({name: one["column"] for name, one in self.job()["ids"].items()},
                         {"list2": "list2", "list2_": "seen items"})

    def test_amounts_are_told_from_keys_by_their_names(self):
        names = ["price_per_item", "pages_per_session", "in_stock", "amount_paid", "userId", "zip", "item", "shop code"]
        lines = [",".join([str(self.chance.randrange(90)) for _ in names] + [str(k % 2)]) for k in range(400)]
        self.init(self.write("data.csv", [",".join([*names, "clicked"]), *lines]), "--model", "ctr")
        self.assertEqual(self.job()["ids"]["field"]["buckets"], names[:4])

    def test_a_job_may_go_to_standard_output(self):
        path = self.write("data.csv", ["user,item,rating", *(f"{u},{i},{r}" for u, i, r in self.ratings())])
        log = self.folder / "log"
        self.init(path)
        job = (self.folder / "data.toml").read_text()
        for mode, before in (("w", ""), ("a", "precious\n")):
            for name in "-", "/dev/stdout":
                log.write_text(before)
                with open(log, mode) as out:
                    done = subprocess.run([PROGRAM, "init", path, "--out", name], stdout=out, stderr=subprocess.PIPE, text=True,
                                          cwd=self.folder)
                self.assertEqual(done.returncode, 0)
                self.assertEqual(log.read_text(), before + job)
                self.assertTrue(done.stderr.startswith(f"{path}: 600 records"), done.stderr)
        self.assertFalse((self.folder / "-").exists())

    def test_names_that_no_file_can_have(self):
        path = self.write("data.csv", ["user,item,rating", *(f"{u},{i},{r}" for u, i, r in self.ratings())])
        (self.folder / "loop").symlink_to("loop")
        (self.folder / "dangling").symlink_to("nowhere")
        self.assertIn("cannot open", self.refused(self.folder / "loop"))
        for name, said in (("x" * 300, "File name too long"), ("dangling", "exists; --force replaces it"),
                           ("loop", "exists; --force replaces it")):
            self.assertIn(said, self.refused(path, "--out", self.folder / name))

    def test_fractions_are_numbers_and_a_label_at_the_end_is_found(self):
        lines = [f"{self.chance.choice('abc')},{self.chance.random():.4f},2024-01-0{1 + k % 9},{'>50K' if k % 3 else '<=50K'}"
                 for k in range(300)]
        self.init(self.write("data.csv", ["class,weight,seen,income", *lines]))
        text = (self.folder / "data.toml").read_text()
        self.assertIn('numbers = ["weight"] # standardised\n', text)
        self.assertIn('positive = [">50K"] # label 1; "<=50K" is 0, --positive chooses\n', text)
        self.assertIn('\n# [split]\n# time = "seen" # tests on the latest records\n', text)
        job = self.job()
        self.assertEqual((job["model"], job["data"]["label"], job["ids"]["field"]["columns"]),
                         ({"kind": "ctr"}, "income", ["class"]))
        self.trains()
        (self.folder / "data.toml").write_text(text.replace("# [split]", "[split]").replace("# time", "time"))
        self.trains()

    def test_the_only_other_keys_are_those_of_users(self):
        lines = [f"{who},{what},{stars},2024-03-{1 + k % 28:02}" for k, (who, what, stars) in enumerate(self.ratings())]
        self.init(self.write("data.csv", ["No,Film,Stars,When", *lines]))
        job = self.job()
        self.assertEqual((job["model"]["kind"], job["ids"]["user"]["column"]), ("mf", "No"))
        self.assertIn('# time = "When" # instead of by: tests on the latest records\n', (self.folder / "data.toml").read_text())
        self.trains()

    def test_labels_0_and_1_without_a_header(self):
        path = self.write("data.csv", [f"{k % 2},{k % 7},{'xyz'[k % 3]}" for k in range(300)])
        self.init(path, "--model", "ctr", "--label", "1")
        job = self.job()
        self.assertEqual((job["data"]["header"], job["data"]["label"]), (False, 1))
        self.assertEqual(job["ids"]["field"]["columns"], [2, 3])
        self.trains()

    def test_blanks_around_fields(self):
        path = self.write("data.csv", [f"{k % 7}, {'red' if k % 3 else 'blue'}, {'>50K' if k % 2 else '<=50K'}" for k in range(300)])
        self.init(path, "--model", "ctr", "--label", "3", "--positive", ">50K")
        self.assertEqual((self.job()["data"]["trim"], self.job()["data"]["positive"]), (True, [">50K"]))
        self.trains()

    def test_a_header_that_is_none_may_be_said(self):
        path = self.write("data.csv", [f"{a},{b}" for a, b in zip("abcdefgh", "stuvwxyz")])
        self.assertIn("7 records, fields between ',', names in the first line",
                      self.init(path, "--model", "pairwise", "--user", "a", "--item", "s"))
        self.assertIn("8 records", self.init(path, "--no-header", "--model", "pairwise", "--user", "1", "--item", "2", "--force"))

    def test_likes_and_orders(self):
        pairs = [f"u{u},{i},2024-03-{1 + k % 28:02} 12:00" for k, (u, i, _) in enumerate(self.ratings())]
        path = self.write("data.csv", ["customer,sku,ordered", *pairs])
        self.init(path)
        job = self.job()
        self.assertEqual((job["model"]["kind"], job["data"]["time"]), ("next_item", "ordered"))
        self.trains()
        self.init(path, "--model", "pairwise", "--out", self.folder / "likes.toml")
        self.assertEqual(self.job("likes.toml")["model"], {"kind": "pairwise"})
        self.trains("likes.toml")

    def test_text(self):
        self.init(self.write("data.txt", ["the quick brown fox jumps over the lazy dog"] * 500))
        self.assertEqual(self.job()["model"], {"kind": "skipgram"})
        self.trains()

    def test_prose(self):
        """Commas stand anywhere in it."""
        words = [" ".join(f"w{self.chance.randrange(50)}" + "," * (self.chance.randrange(4) == 0) for _ in range(12)) for _ in range(400)]
        out = self.init(self.write("data.txt", ["Of words, as they come", "", *words]))
        self.assertIn("records, one field each, no names in the first line", out)
        self.assertEqual(self.job()["model"], {"kind": "skipgram"})
        self.trains()

    def test_lists_of_a_users_items(self):
        path = self.write("data.txt", [" ".join(map(str, [u, *(7 * u + k * k for k in range(3 + u % 5))])) for u in range(60)])
        self.assertIn("60 lines of a user and the user's items, integers\n", self.init(path))
        self.assertEqual((self.job()["data"]["format"], self.job()["model"]), ("lists", {"kind": "pairwise"}))
        self.trains()
        self.init(path, "--model", "next_item", "--out", self.folder / "next.toml")
        self.assertEqual(self.job("next.toml")["model"], {"kind": "next_item"})
        self.trains("next.toml")
        self.assertIn("--user must be left out for", self.refused(path, "--user", "1"))
        self.assertIn("--model must be pairwise or next_item for", self.refused(path, "--model", "mf"))

    def test_lines_that_are_no_lists(self):
        for lines in (["7 8 9", "7 1"] * 9, [*(f"{k} {k % 5}" for k in range(9)), "9 x y"], [str(k) for k in range(9)] + ["10 11"]):
            self.init(self.write("data.txt", lines), "--force")
            self.assertEqual(self.job()["model"], {"kind": "skipgram"}, lines)

    def test_numbers_between_blanks(self):
        path = self.write("data.txt", ["user item rating", *(f"{u} {i} {r}" for u, i, r in self.ratings())])
        self.assertIn("records, fields between blanks, names in the first line", self.init(path))
        self.assertEqual((self.job()["data"]["field_separator"], self.job()["model"]), (" ", {"kind": "mf"}))
        self.trains()

    def test_what_cannot_be_known_is_named(self):
        path = self.write("data.csv", ["a,b,c", *(f"{k},{k % 5},{k % 3}" for k in range(50))])
        self.assertIn("What shall be trained cannot be told from the columns. Give --model, one of: mf, ctr, pairwise, next_item",
                      self.refused(path))
        self.assertIn("Which column is to be predicted? Give --label, one of: a, b, c", self.refused(path, "--model", "mf"))
        self.assertIn("Which column has the users? Give --user", self.refused(path, "--model", "mf", "--label", "c"))
        self.assertIn("--user must be a column of", self.refused(path, "--user", "d"))
        self.assertIn("--label must have two values", self.refused(path, "--model", "ctr", "--label", "a"))
        self.assertIn("--positive must be a text of column 'c', got '9'",
                      self.refused(path, "--model", "ctr", "--label", "c", "--positive", "9"))
        self.assertFalse((self.folder / "data.toml").exists())
        self.init(path, "--model", "ctr", "--label", "c", "--positive", "2")
        self.assertEqual(self.job()["data"]["positive"], ["2"])

    def test_an_option_of_other_models_is_refused(self):
        ratings = self.write("ratings.csv", ["user,item,rating,time", *(f"{k % 9},{k % 7},{1 + k % 5},{k}" for k in range(90))])
        clicks = self.write("clicks.csv", ["user,item,clicked", *(f"{k % 9},{k % 7},{k % 2}" for k in range(90))])
        for words, said in [((ratings, "--model", "mf", "--positive", "1"), "--positive: is only for --model ctr"),
                            ((ratings, "--model", "pairwise", "--label", "rating"), "--label: is only for --model mf, ctr"),
                            ((ratings, "--model", "pairwise", "--time", "time"), "--time: is only for --model mf, ctr, next_item"),
                            ((ratings, "--model", "ctr", "--item", "item"), "--item: is only for --model mf, pairwise, next_item"),
                            ((ratings, "--model", "skipgram", "--user", "user"), "--user: is only for --model mf, pairwise, next_item"),
                            ((ratings, "--model", "skipgram", "--item", "item", "--label", "rating", "--time", "item"),
                             "--label: is only for --model mf, ctr"),
                            ((clicks, "--user", "user"), "--user: is only for --model mf, pairwise, next_item; these columns suggest ctr")]:
            code, _, err = self.call("init", *words)
            self.assertEqual(code, 2)
            self.assertIn(said + "\n", err)
        self.assertFalse(list(self.folder.glob("*.toml")))
        self.init(ratings, "--model", "mf", "--time", "time")
        self.assertIn("# time = \"time\"", (self.folder / "ratings.toml").read_text())

    def test_what_a_model_needs_is_filled_and_named_once(self):
        rows = [(self.chance.randrange(30), self.chance.choice(["yes", "no", ""])) for _ in range(400)]
        path = self.write("data.csv", ["age,customer", *(f"{a},{c}" for a, c in rows)])
        self.init(path, "--model", "ctr", "--label", "customer", "--positive", "yes")
        self.assertEqual(self.job()["data"]["where"], {"customer": "filled"})
        self.trains()
        events = [(u, self.chance.randrange(20), t if t % 50 else "") for t, u in enumerate(sorted(range(20)) * 30)]
        path = self.write("events.csv", ["user,item,time", *(",".join(map(str, one)) for one in events)])
        self.init(path)
        self.assertEqual(self.job("events.toml")["model"]["kind"], "next_item")
        self.assertEqual(self.job("events.toml")["data"]["where"], {"time": "filled"})
        self.trains("events.toml")

    def test_a_column_with_an_apostrophe(self):
        path = self.write("data.csv", ["Driver's,item,rating", *(f"{u or ''},{i},{r}" for u, i, r in self.ratings())])
        self.init(path, "--user", "Driver's", "--item", "item", "--label", "rating")
        self.trains("data.toml", "--out", self.folder / "run")
        code, _, err = self.call("eval", self.folder / "run")
        self.assertEqual((code, err), (0, ""))

    def test_labels_0_and_1_may_be_turned_round(self):
        path = self.write("data.csv", ["a,label", *(f"{k % 5},{k % 2}" for k in range(50))])
        for positive, written in [("1", None), ("0", ["0"])]:
            self.init(path, "--model", "ctr", "--positive", positive, "--force")
            self.assertEqual(self.job()["data"].get("positive"), written)
        self.trains()

    def test_a_terminal_is_asked(self):
        path = self.write("data.csv", ["who,what,score", *(f"{k % 9},{k % 7},{1 + k % 5}" for k in range(200))])
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal can be made: {error}")
        program = subprocess.Popen([PROGRAM, "init", path], stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        os.write(ours, b"mf\nscores\nscore\nwho\nwhat\n")
        said = b""
        while program.poll() is None or b"next:" not in said:
            try:
                said += os.read(ours, 4096)
            except OSError:
                break
        self.assertEqual(program.wait(), 0, said)
        os.close(ours)
        self.assertEqual(said.count(b"Which column is to be predicted?"), 2)
        self.assertEqual(self.job()["ids"], {"user": {"column": "who"}, "item": {"column": "what"}})
        self.trains()

    def test_files_that_are_none(self):
        self.assertIn("cannot open", self.refused(self.folder / "nothing.csv"))
        self.assertIn("must have records, got none", self.refused(self.write("data.csv", ["user,item"])))
        self.assertIn("must have records with as many fields as its first line, 1, got none and 2 others",
                      self.refused(self.write("data.csv", ["# ratings", "1,2,3", "4,5,6"])))
        self.assertIn("must have records with as many fields as its first line, 2, got none and 2 others",
                      self.refused(self.write("data.csv", ["Ratings, of films", "1,2,3", "4,5,6"])))
        (self.folder / "empty.csv").write_bytes(b"")
        self.assertIn("empty.csv", self.refused(self.folder / "empty.csv"))
        os.mkfifo(self.folder / "pipe")
        for path in (self.folder / "pipe", self.folder):
            self.assertIn("must be a regular file: it is read several times", self.refused(path))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
