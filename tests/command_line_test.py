"""What the command line prints and which exit codes it gives.

Usage: command_line_test.py EMBERTABLE
"""

import json
import pathlib
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from small_run import SmallRun

PROGRAM = sys.argv[1]


def call(*words):
    """(exit code, stdout, stderr)"""
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def started(command):
    """A process that has saved its first step."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if json.loads(line)["event"] == "saved":
            return process
    raise AssertionError(f"{command} saves nothing: {process.stderr.read()}")


def ended(process):
    """(exit code, last event)"""
    out, _ = process.communicate()
    return process.returncode, json.loads(out.splitlines()[-1])


class CommandLine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.run_ = SmallRun(cls.folder, PROGRAM)
        cls.saved = cls.folder / "saved"
        cls.events = cls.run_.train(cls.saved)
        cls.done = cls.events[-1]

    def out(self):
        return self.folder / self.id().rsplit(".", 1)[-1]

    def endless(self):
        return self.run_.command(self.out(), "--set", "schedule.epochs=100000", "--resume")

    def test_unknown_command_is_told_the_nearest(self):
        code, out, err = call("trian", "x.toml")
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(err, r"^embertable: the command must be one of init, train, .*got \"trian\"; the nearest is 'train'$")

    def test_help_is_a_command_too(self):
        self.assertEqual(call("help"), call("--help"))
        self.assertEqual(call("help", "train"), call("train", "--help"))
        code, _, err = call("help", "trian")
        self.assertEqual(code, 2)
        self.assertIn("the nearest is 'train'", err)
        self.assertTrue(call("rows")[2].endswith('got "rows"\n'))

    def test_options_stand_behind_the_command(self):
        code, out, err = call("--threads", "3", "train", "x.toml")
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(err, "embertable: the options of train must stand behind train, got '--threads' before it\n")
        self.assertIn("train has no option '--thread'; the nearest is '--threads'", call("train", "x.toml", "--thread", "3")[2])

    def test_an_empty_text_is_no_path(self):
        """As "$OUT" is where the shell has no such variable."""
        for words in (["train", self.run_.job, "--out", ""], ["train", self.run_.job, "--csv", ""],
                      ["train", self.run_.job, "--tensorboard", ""], ["train", self.run_.job, "--data", ""],
                      ["sweep", self.run_.job, "--grid", "seed=1,2", "--out", ""],
                      ["export", self.saved, "--format", "npy", "--out", ""],
                      ["import", self.folder, "--format", "npy", "--out", ""], ["eval", self.saved, "--data", ""],
                      ["predict", self.saved, "-", "--output", ""], ["init", self.folder / "ratings.csv", "--out", ""]):
            code, out, err = call(*words)
            self.assertEqual((code, out), (2, ""), words)
            self.assertRegex(err, r"^--\w+: must not be empty\n")

    def test_numbers_out_of_range_are_told_their_range(self):
        for words, said in ((["neighbors", self.saved, "--table", "item", "--row", "1", "--k", "0"],
                             "--k: must be a whole number of at least 1, got '0'"),
                            (["sweep", self.run_.job, "--grid", "seed=1,2", "--out", "x", "--random", "2.5"],
                             "--random: must be a whole number of at least 1, got '2.5'"),
                            (["export", self.saved, "--format", "tf", "--out", "x", "--shards", "-1"],
                             "--shards: must be a whole number of at least 0, got '-1'"),
                            (["import", self.saved, "--format", "tf", "--out", "x", "--step", "-1"],
                             "--step: must be a whole number of at least 0, got '-1'"),
                            (["lookup", self.saved, "--table", "item", "--row", "9999999999999999999"],
                             "--row: must be a whole number from 0 to 9223372036854775807, got '9999999999999999999'"),
                            (["train", self.run_.job, "--show", "--json"], "--show excludes --json"),
                            (["train", self.run_.job, "--deadline", "0"], "--deadline: must be a number above 0, got '0'")):
            code, _, err = call(*words)
            self.assertEqual(code, 2)
            self.assertEqual(err.splitlines()[0], said)

    def test_what_a_run_proposes_works(self):
        words = ["train", self.run_.job, "--data", self.folder, "--set", "schedule.epochs=1", "--out"]
        code, out, _ = call(*words, self.out())
        self.assertEqual([line.split()[1] for line in out.split("next:\n")[1].splitlines()], ["predict", "predict", "neighbors"])
        narrow = self.folder / "narrow.toml"
        narrow.write_text(self.run_.job.read_text().replace("dim = 16", "dim = 1"))
        code, out, _ = call("train", narrow, *words[2:], self.folder / "narrow")
        self.assertEqual([line.split()[1] for line in out.split("next:\n")[1].splitlines()], ["predict", "predict"])
        sided = self.folder / "sided.toml"  # items cannot be ranked with a side that is of users too
        sided.write_text('[data]\nfile = "ratings.csv"\nlabel = "rating"\nrange = [1, 5]\n[ids]\nuser.column = "user"\n'
                         'item.column = "item"\n[tables]\nuser = { ids = "user", dim = 4 }\nitem = { ids = "item", dim = 4 }\n'
                         'rater = { ids = "user", dim = 4 }\n[features]\nuser.table = "user"\nitem.table = "item"\n'
                         'rater.table = "rater"\n[model]\nkind = "mf"\nuser = "user"\nitem = "item"\nsides = ["rater"]\n')
        code, out, err = call("train", sided, *words[2:], self.folder / "sided")
        self.assertEqual([line.split()[1] for line in out.split("next:\n")[1].splitlines()], ["predict", "neighbors"], err)
        hashed = self.folder / "hashed.toml"
        hashed.write_text('[data]\nfile = "ratings.csv"\nlabel = "rating"\nrange = [1, 5]\n[ids]\n'
                          'user = { column = "user", min_count = 2 }\nitem = { column = "item", hash = 50 }\n[model]\nkind = "mf"\n')
        code, out, _ = call("train", hashed, *words[2:], self.folder / "hashed")
        self.assertEqual([line.split()[1] for line in out.split("next:\n")[1].splitlines()], ["predict"])
        code, out, _ = call("lookup", self.folder / "hashed", "--table", "item", "--key", "7", "--key", "8", "--json")
        self.assertEqual(code, 0)
        self.assertEqual([json.loads(line)["row"] for line in out.splitlines()], [25, 31])  # XXH3-64 * 50 >> 64
        code, _, err = call("lookup", self.folder / "hashed", "--table", "item", "--key", "seven")
        self.assertIn("table 'item': a key must be an integer, got 'seven'", err)
        code, _, err = call("lookup", self.folder / "hashed", "--table", "user", "--key", "99999")
        self.assertRegex(err, r"table 'user' has no key '99999'; rare and unknown keys as this one have row \d+")

    def test_a_part_without_records_has_no_loss(self):
        code, out, _ = call("synth", self.folder / "one", "--table", "a:5", "--records", "1", "--json")
        self.assertEqual(code, 0)
        best = json.loads((self.folder / "one.json").read_text())["best"]
        self.assertEqual([best[part]["logloss"] is None for part in ("training", "validation", "test")],
                         [best[part]["records"] == 0 for part in ("training", "validation", "test")])
        self.assertEqual(json.loads(out)["best_test_logloss"], best["test"]["logloss"])
        self.assertEqual(best["test"]["records"], 0)

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            for words in [["--help"], ["digest", self.saved], ["verify", self.saved, "--json"]]:
                done = subprocess.run([PROGRAM, *map(str, words)], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual((done.returncode, done.stderr), (1, "embertable: standard output: cannot write\n"), words)

    def test_an_error_that_cannot_be_said_has_its_exit_code(self):
        for streams in ["2>/dev/full", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"]:
            for words, code in [("digest nothing", 1), ("digset", 2), (f"digest {self.saved} --nothing", 2)]:
                done = subprocess.run(f"{shlex.quote(PROGRAM)} {words} {streams}", shell=True, stdout=subprocess.DEVNULL)
                self.assertEqual(done.returncode, code, (words, streams))

    def test_what_is_printed_goes_to_no_file_where_streams_are_closed(self):
        """The lowest free number is that of the next file that is opened."""
        subprocess.run(f"{shlex.join(map(str, self.run_.command(self.out())))} <&- >&-", shell=True, check=True)
        self.assertRegex((self.out() / ".lock").read_text(), r"^\d+\n?$")

    def test_selftest_finds_no_deviation(self):
        code, out, _ = call("selftest", "--json")
        report = json.loads(out)
        self.assertEqual([line["failures"] for line in report["rules"] + report["combiners"] if not line["ok"]], [])
        self.assertEqual(code, 0)
        self.assertTrue(report["ok"])
        for line in report["rules"] + report["combiners"]:
            self.assertEqual(list(line["digests"]), report["levels"])
            self.assertEqual(len(set(line["digests"].values())), 1)

    def test_train_reports_each_event(self):
        kinds = [event["event"] for event in self.events]
        self.assertEqual(kinds[0], "start")
        self.assertEqual(kinds.count("epoch"), 3)
        steps = [event["step"] for event in self.events if event["event"] == "saved"]
        self.assertEqual(steps, [*range(8, self.done["steps"] + 1, 8), self.done["steps"]][:len(steps)])
        self.assertEqual(sorted(path.name for path in self.saved.glob("step_*")),
                         [f"step_{step:012}" for step in steps[-2:]])
        self.assertEqual(call("digest", self.saved)[1].strip(), self.done["digest"])

    def test_a_newest_step_that_cannot_be_opened_is_told_of(self):
        shutil.copytree(self.saved, self.out())
        older, newest = sorted(self.out().glob("step_*"))
        with (newest / "manifest.json").open("r+b") as file:
            file.truncate(100)
        rows = self.folder / "rows.csv"
        rows.write_text("user,item\n7,7\n")
        (said,) = json.loads(call("inspect", self.out(), "--json")[1])["skipped"]
        for words in (["digest", self.out()], ["lookup", self.out(), "--table", "user", "--row", "0"],
                      ["neighbors", self.out(), "--table", "user", "--row", "0"], ["eval", self.out()],
                      ["predict", self.out(), rows],
                      ["export", self.out(), "--format", "npy", "--out", self.folder / "arrays"]):
            code, out, err = call(*words, "--json")
            self.assertEqual(code, 0, err)
            self.assertEqual(err.splitlines()[0], f"embertable: takes an older step; skipped: {said}")
            if words[0] in ("digest", "eval"):
                self.assertEqual(json.loads(out)["skipped"], [said])
            if words[0] == "predict":
                self.assertEqual(json.loads(err.splitlines()[-1])["skipped"], [said])
            self.assertEqual(call(words[0], older, *words[2:])[2].count("older step"), 0)

    def test_used_directory_asks_for_resume(self):
        code, out, err = call(*self.run_.command(self.saved)[1:])
        self.assertEqual((code, out), (1, ""))
        self.assertIn("which holds a run up to step", err)
        self.assertIn("; --resume goes on with it, --overwrite removes it", err)

    def test_resume_of_a_finished_run_prints_its_result(self):
        events = self.run_.train(self.saved, "--resume")
        self.assertEqual([event["event"] for event in events], ["start", "done"])
        self.assertEqual(events[0]["resumed"]["step"], self.done["steps"])
        self.assertEqual({k: events[1][k] for k in ("test", "digest", "steps")},
                         {k: self.done[k] for k in ("test", "digest", "steps")})
        words = [word for word in self.run_.command(self.saved, "--resume")[1:] if word != "--json"]
        self.assertIn("holds the finished run", call(*words)[1])

    def test_resume_of_nothing_starts_anew_and_says_so(self):
        words = [word for word in self.run_.command(self.out(), "--resume")[1:] if word != "--json"]
        code, out, _ = call(*words)
        self.assertEqual(code, 0)
        self.assertIn(f"nothing is saved in {self.out()} yet: starts anew", out)
        self.assertIn(f"digest {self.done['digest']}", out)

    def test_resume_refuses_another_job(self):
        code, _, err = call(*self.run_.command(self.saved, "--resume", "--seed", "9")[1:])
        self.assertEqual(code, 1)
        self.assertIn("seed must be '1' as in the run", err)

    def test_interrupted_run_says_how_to_go_on(self):
        process = started(self.endless())
        process.send_signal(signal.SIGINT)
        code, event = ended(process)
        self.assertEqual((code, event["event"], event["signal"]), (130, "interrupted", "SIGINT"))
        self.assertEqual(pathlib.Path(event["saved"]).name, f"step_{event['steps']:012}")
        self.assertEqual(call("verify", self.out())[0], 0)

        process = started(shlex.split(event["resume"]))  # the exact words
        process.terminate()
        code, again = ended(process)
        self.assertEqual((code, again["signal"]), (143, "SIGTERM"))
        self.assertGreater(again["steps"], event["steps"])
        self.assertEqual(again["resume"], event["resume"])

    def test_interrupted_run_ends_as_an_uninterrupted_one(self):
        process = started(self.endless())
        process.send_signal(signal.SIGINT)
        _, event = ended(process)
        per_epoch = self.done["steps"] // 3
        epochs = str(event["steps"] // per_epoch + 2)
        rest = self.run_.train(self.out(), "--resume", "--set", f"schedule.epochs={epochs}")
        whole = self.run_.train(self.folder / "whole", "--set", f"schedule.epochs={epochs}", "--save-every", "end")
        self.assertEqual(rest[-1]["digest"], whole[-1]["digest"])
        self.assertEqual(rest[-1]["test"], whole[-1]["test"])
        reports = [[(e["epoch"], e["learning_rate"], e["training"]) for e in events if e["event"] == "epoch"]
                   for events in (rest, whole)]
        self.assertEqual(reports[0], reports[1][-len(reports[0]):])

    def test_second_signal_ends_at_once(self):
        process = started(self.endless())
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(call("verify", "--all", self.out())[0], 0)

    def test_two_runs_exclude_each_other(self):
        process = started(self.endless())
        code, _, err = call(*self.run_.command(self.out(), "--resume")[1:])
        self.assertEqual(code, 1)
        self.assertIn(f"process {process.pid} holds its lock", err)
        process.terminate()
        self.assertEqual(ended(process)[0], 143)

    def test_interrupted_without_directory_says_so(self):
        words = [*self.endless(), "--set", "schedule.look_ahead=0"]
        out = words.index("--out")
        del words[out:out + 2]
        words.remove("--resume")
        notice = self.folder / "notice"
        with open(notice, "w") as err:
            process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=err, text=True)
        for line in process.stdout:
            if json.loads(line)["event"] == "epoch":
                break
        process.send_signal(signal.SIGINT)
        code, event = ended(process)
        self.assertEqual((code, "saved" in event, "resume" in event), (130, False, False))
        self.assertIn("embertable: stops after this step; a second signal stops at once\n", notice.read_text())

    def test_saving_can_be_chosen(self):
        events = self.run_.train(self.out(), "--save-every", "epoch", "--keep", "1")
        self.assertEqual([e["event"] for e in events[1:]], ["epoch", "saved"] * 3 + ["done"])
        self.assertEqual(len(list(self.out().glob("step_*"))), 1)
        code, _, err = call("train", self.run_.job, "--keep", "2")
        self.assertEqual(code, 2)
        self.assertIn("--out", err)
        code, _, err = call(*self.run_.command(self.folder / "never", "--save-every", "often")[1:])
        self.assertEqual(code, 1)
        self.assertIn('checkpoint.every must be a number of steps from 1, "epoch" or "end", got \'often\'', err)

    def test_a_misspelt_option_is_named_with_the_nearest(self):
        for words, said in ((("eval", self.saved, "--skip-bda", "3"), "eval has no option '--skip-bda'; the nearest is '--skip-bad'"),
                            (("digest", self.saved, "more"), "digest takes no argument 'more' besides those it has")):
            code, out, err = call(*words)
            self.assertEqual((code, out, err), (2, "", f"embertable: {said}\n"))

    def test_eval_gives_the_figures_of_the_run(self):
        code, out, _ = call("eval", self.saved, "--data", self.folder, "--json")
        self.assertEqual(code, 0)
        found = json.loads(out)
        self.assertEqual({k: found[k] for k in ("rmse", "mae")}, self.done["test"])
        self.assertEqual((found["part"], found["step"]), ("test", self.done["steps"]))
        _, out, _ = call("eval", self.saved, "--data", self.folder)
        self.assertIn(f"{self.done['test']['rmse']:.4f}", out)
        _, out, _ = call("eval", self.saved, "--data", self.folder, "--part", "training", "--json")
        self.assertEqual(json.loads(out)["part"], "training")
        self.assertEqual(call("eval", self.saved, "--data", self.folder, "--part", "all")[0], 2)
        code, _, err = call("eval", self.folder / "none")
        self.assertEqual(code, 1)
        self.assertIn("there is no checkpoint", err)

    def test_inspect_shows_what_is_there(self):
        code, out, _ = call("inspect", self.saved, "--json")
        self.assertEqual(code, 0)
        found = json.loads(out)
        self.assertEqual([table["name"] for table in found["tables"]], ["item", "tag", "user"])
        self.assertEqual(found["tables"][2]["variables"][1]["name"], "user/accumulators")
        self.assertEqual(found["tables"][2]["variables"][0]["bytes"], 300 * 16 * 4)
        self.assertEqual(found["user"]["progress"]["epochs"], 3)
        _, out, _ = call("inspect", self.saved)
        for text in ("job small, model mf: 3 epochs and 0 samples done", "user: 300 rows x 16 float32, ", "user/accumulators",
                     "19 KiB  F32 [300, 16]", "id maps", "names.item", "vectors.item"):
            self.assertIn(text, out)
        self.assertEqual(call("inspect", self.saved, "--job")[1], self.run_.job.read_text())

    def test_verify_names_the_damaged_file_and_block(self):
        self.run_.train(self.out())
        code, out, _ = call("verify", self.out(), "--all")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"2 steps, \d+ files, \d+ blocks, .*: all checksums match")
        last = max(self.out().glob("step_*"))
        file = max(last.glob("*.safetensors"), key=lambda path: path.stat().st_size)
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        code, out, _ = call("verify", self.out())
        self.assertEqual(code, 1)
        self.assertRegex(out, rf"DAMAGED  {file.name}")
        self.assertRegex(out, r"block 0 .* does not match its checksum")
        self.assertTrue(out.endswith("1 file damaged\n"))
        code, out, _ = call("verify", self.out(), "--json")
        found = json.loads(out)
        self.assertEqual((code, found["damaged"]), (1, 1))
        self.assertEqual([f["name"] for f in found["steps"][0]["files"] if "damage" in f], [file.name])
        code, _, err = call("verify", self.folder / "none")
        self.assertEqual(code, 1)
        self.assertIn("there is no checkpoint", err)

    def test_verify_names_a_step_that_leads_nowhere(self):
        self.run_.train(self.out())
        (self.out() / "step_000000999999").symlink_to(self.folder / "away")
        code, out, _ = call("verify", "--all", self.out())
        self.assertEqual(code, 1)
        self.assertRegex(out, "the step is no directory")

    def stored_row(self, table, row):
        """Of the files themselves, whatever the library says."""
        (file,) = max(self.saved.glob("step_*")).glob(f"t*-{table}-*.safetensors")
        content = file.read_bytes()
        (size,) = struct.unpack_from("<Q", content)
        tensor = json.loads(content[8:8 + size])[table]
        width = tensor["shape"][1]
        return struct.unpack_from(f"<{width}f", content, 8 + size + tensor["data_offsets"][0] + row * width * 4)

    def test_lookup_prints_rows_by_number_key_and_name(self):
        code, out, _ = call("lookup", self.saved, "--table", "item", "--row", "3", "0", "--key", "13", "--name", "item 7",
                            "--json")
        self.assertEqual(code, 0)
        found = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([row["row"] for row in found][:2], [3, 0])
        self.assertEqual((found[2]["key"], found[2]["name"]), ("13", "Item 13"))
        self.assertEqual((found[3]["key"], found[3]["name"]), ("7", "Item 7"))
        for row in found:
            values = struct.unpack("<16f", struct.pack("<16f", *row["values"]))
            self.assertEqual(values, self.stored_row("item", row["row"]))
        _, out, _ = call("lookup", self.saved, "--table", "tag", "--key", "t2")
        self.assertRegex(out, r"^row \d+  key t2\s*\n( +-?[\d.e-]+){8}\n")

    def test_lookup_says_what_is_wrong(self):
        for words, said in [(["--table", "itme", "--row", "0"], "there is no table 'itme'; the nearest is 'item'"),
                            (["--table", "item", "--row", "120"], "table 'item': row must be 0 <= row < 120, got 120"),
                            (["--table", "item", "--key", "120"], "table 'item' has no key '120'"),
                            (["--table", "user", "--name", "x"], "table 'user' has no names; give a key"),
                            (["--table", "item", "--name", ""], "table 'item': a name must have a character, got none"),
                            (["--table", "user", "--name", ""], "table 'user' has no names; give a key")]:
            code, out, err = call("lookup", self.saved, *words)
            self.assertEqual((code, out), (1, ""))
            self.assertIn(said, err)
        for command in "lookup", "neighbors":
            code, out, err = call(command, self.saved, "--table", "tag", "--key", "")
            self.assertEqual((code, out), (1, ""))
            self.assertIn("table 'tag' has no key ''", err)
        self.assertEqual(call("lookup", self.saved, "--table", "item")[0], 2)

    def test_lookup_refuses_a_damaged_block(self):
        self.run_.train(self.out())
        (file,) = max(self.out().glob("step_*")).glob("t*-item-*.safetensors")
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        code, _, err = call("lookup", self.out(), "--table", "item", "--row", "0")
        self.assertEqual(code, 1)
        self.assertRegex(err, rf"{file.name}.* block 0 ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
