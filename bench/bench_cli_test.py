"""What embertable-bench takes, what it refuses and how runs are compared. Nothing here is timed.

Usage: bench_cli_test.py EMBERTABLE_BENCH
"""

import csv
import json
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1]
SMALL = "--threads", "2", "--repetitions", "1", "--rows", "1000", "--batches", "2"
COMMANDS = "serving", "checkpoint", "optimizers", "reader", "sharded", "sweep", "hot", "stages", "small", "hosts"
ALL_WORKLOADS = ["W1", "W2", "W3", "W4", "W5", "W6"]


def call(*words):
    """(exit code, stdout, stderr)"""
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def table(file):
    return list(csv.DictReader(file.read_text().splitlines()))


def options_of(*command):
    """Option -> whether its help names a default."""
    text = call(*command, "--help")[1]
    return {name: "=" in head for name, head in re.findall(r"^  (?:-h,)?(--[\w-]+)(.*?)(?:  |$)", text, re.MULTILINE)}


class Options(unittest.TestCase):
    def refused(self, *words):
        code, out, err = call(*words)
        self.assertNotEqual(code, 0, words)
        self.assertEqual(out, "", words)
        return err

    def test_what_a_command_does_not_take_is_refused_by_name(self):
        for words in (["sweep", "--csv", "/dev/null", "--workload", "W1"], ["hot", "--workload", "W1"],
                      ["--workload", "W1", "hot"], ["hot", "--batches", "3"], ["serving", "--threads", "2"],
                      ["serving", "--repetitions", "2"], ["reader", "--threads", "2"], ["checkpoint", "--rows", "5"],
                      ["optimizers", "--batches", "5"], ["sharded", "--workload", "W1"],
                      ["hosts", "--threads", "2"], ["hosts", "--random", "1"],
                      ["stages", "--random", "1"], ["--random", "1", "stages"],
                      ["stages", "--compare", __file__], ["--compare", __file__, "sweep", "--csv", "/dev/null"]):
            name = next(word for word in words if word.startswith("--") and word != "--csv")
            command = next(word for word in words if word in COMMANDS)
            self.assertIn(f"{name}: it is no option of '{command}'", self.refused(*words))

    def test_an_option_of_a_command_alone_stands_after_it(self):
        for command in "optimizers", "reader", "sharded", "hot":
            self.assertIn(f"--rows: it must stand after '{command}'", self.refused("--rows", "5000", command))

    def test_commands_exclude_each_other(self):
        self.assertIn("hot", self.refused("stages", "hot"))

    def test_options_exclude_and_need_each_other(self):
        for words, said in ((["--floor", "0.5"], "--floor requires --random"),
                            (["--random", "1", "--compare", __file__], "--compare"),
                            (["--random", "1", "--workload", "W1"], "--workload"),
                            (["--random", "1", "--rows", "1000"], "--rows"),
                            (["--random", "1", "--batches", "3"], "--batches"),
                            (["optimizers", "--rows", "1000"], "--rows requires --step"),
                            (["optimizers", "--step", "--mib", "5"], "--mib"),
                            (["reader", "--file", __file__, "--rows", "1000"], "--rows"),
                            (["serving", "--bytes", str(1 << 21)], "--bytes requires --dir"),
                            (["serving", "--row-type", "int8"], "--row-type requires --dir"),
                            (["sweep"], "--csv"),
                            (["sweep", "--csv", "/dev/null", "--factor", "colour"], "--factor"),
                            (["hosts", "--workload", "W7"], "--workload"),
                            (["--transport", "tcp"], "--transport"),
                            (["sweep", "--csv", "/dev/null", "--factor", "rows", "--rows", "1000"], "--rows")):
            self.assertIn(said, self.refused(*words))

    def test_help_shows_defaults(self):
        without = {"--help", "--json", "--compare", "--random",  # nothing happens without them
                   "--dir", "--rule", "--step", "--file", "--plain", "--csv", "--quick", "--steps-alone"}
        for command in (), *((name,) for name in COMMANDS):
            options = options_of(*command)
            self.assertIn("--json", options)
            self.assertEqual([name for name, default in options.items() if not default and name not in without], [], command)
        for command, usual in (((), 5), (("stages",), 5), (("hot",), 5), (("optimizers",), 5),
                               (("reader",), 5), (("sharded",), 7), (("hosts",), 5), (("sweep",), 3), (("checkpoint",), 3)):
            self.assertRegex(call(*command, "--help")[1], rf"--repetitions INT.*={usual}\b")


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        code, cls.stored, err = call(*SMALL, "--json")
        assert code == 0, err

    def compare(self, text, *words):
        """Standard error and exit code of a run beside this stored one."""
        file = self.folder / self.id().rsplit(".", 1)[-1]
        file.write_text(text)
        code, _, err = call(*SMALL, *words, "--compare", file)
        return code, err

    def changed(self, **factors):
        """The stored run with numbers multiplied."""
        lines = [json.loads(line) for line in self.stored.splitlines()]
        return "".join(json.dumps({**line, **{key: line[key] * by for key, by in factors.items()}}) + "\n" for line in lines)

    def test_json_has_every_workload(self):
        lines = [json.loads(line) for line in self.stored.splitlines()]
        self.assertEqual([line["workload"] for line in lines], ALL_WORKLOADS)
        self.assertEqual({(line["threads"], line["rows"], line["batches"], line["repetitions"]) for line in lines},
                         {(2, 1000, 2, 1)})
        self.assertEqual(len({line["machine"] for line in lines}), 1)
        keys = ("workload machine threads rows standard_rows row_type batches repetitions lookups other_load "
                "changed_line_ns forward backward step "
                "gather_limit rmw_limit step_limit step_limit_all_bytes stages step_limit_in_turns")
        self.assertEqual([list(line) for line in lines], [keys.split()] * 6)
        self.assertEqual(list(lines[0]["stages"]), ["enqueue", "forward", "backward", "step"])

    def test_a_run_compares_with_its_own_output(self):
        code, err = self.compare(self.stored)
        self.assertIn(code, (0, 1))  # as fast as the machine lets it
        for name in ALL_WORKLOADS:
            self.assertRegex(err, rf"{name}, 2 threads: of the limit [\d.]+, was [\d.]+ ")
        self.assertNotIn("not compared", err)

    def test_a_run_that_was_far_slower_or_faster_moved(self):
        code, err = self.compare(self.changed(step=1e4))
        self.assertEqual((code, err.count("SLOWER")), (1, 6), err)
        self.assertIn("W6 moved by more than 10 %", err)
        code, err = self.compare(self.changed(step=1e-4))
        self.assertEqual((code, err.count("faster")), (0, 6), err)

    def test_another_load_is_not_compared(self):
        code, err = self.compare(self.changed(rows=2), "--workload", "W4")
        self.assertEqual(code, 1)
        self.assertIn("W4: not compared: 1000 rows a table, were 2000", err)
        self.assertIn("--compare: no workload ran as in the stored run", err)

    def test_a_file_that_is_no_run_is_refused_before_anything_runs(self):
        file = self.folder / "no_run"
        file.write_text("[1/2] Building\n")
        code, out, err = call(*SMALL, "--compare", file)
        self.assertEqual((code, out), (1, ""))
        self.assertIn(f"'{file}', line 1: there must be a workload's object as --json prints it", err)

    def test_steps_without_other_work_between_are_another_load(self):
        code, out, err = call(*SMALL, "--workload", "W4", "--steps-alone")
        self.assertEqual(code, 0, err)
        self.assertIn("no other bytes move between two steps", out)
        self.assertIn("median of 1 pass\n", out)
        self.assertNotIn("in turns", out)
        code, err = self.compare(self.stored, "--workload", "W4", "--steps-alone")
        self.assertEqual(code, 1)
        self.assertIn("W4: not compared: steps alone, were with other work between", err)

    def test_rows_of_bfloat16_are_another_load(self):
        code, out, err = call(*SMALL, "--workload", "W4", "--row-type", "bfloat16", "--json")
        self.assertEqual(code, 0, err)
        told = json.loads(out)
        self.assertEqual((told["row_type"], told["step"] > 0, told["step_limit"] > 0), ("bfloat16", True, True))
        code, out, err = call(*SMALL, "--workload", "W4", "--row-type", "bfloat16")
        self.assertIn("rows of bfloat16, in the bare loops too", out)
        self.assertIn("median of 7 passes", out)
        self.assertRegex(out, r"in turns +[\d.]+   all bytes, batch by batch")
        code, err = self.compare(self.stored, "--workload", "W4", "--row-type", "bfloat16")
        self.assertEqual(code, 1)
        self.assertIn("W4: not compared: rows of bfloat16, were of float32", err)
        code, _, err = call(*SMALL, "--workload", "W4", "--row-type", "float16")
        self.assertNotEqual(code, 0)
        self.assertIn("--row-type", err)

    def test_serving_of_row_types_is_beside_float32(self):
        for row_type in "bfloat16", "int8":
            code, out, err = call("serving", "--row-type", row_type, "--dir", self.folder, "--bytes", 1 << 20, "--json")
            self.assertEqual(code, 0, err)
            lines = [json.loads(line) for line in out.splitlines()]
            self.assertEqual([(line["ids"], line["row_type"]) for line in lines],
                             [(ids, each) for ids in (1, 20) for each in ("float32", row_type)])
            self.assertTrue(all(line["lookups_per_second"] > 0 and line["limit_per_second"] > 0 for line in lines), lines)
            self.assertEqual(list(self.folder.glob("embertable-bench*")), [])

    def test_serving_that_fails_leaves_no_checkpoint_behind(self):
        words = [PROGRAM, "serving", "--dir", self.folder, "--bytes", 1 << 20]
        for more in [], ["--row-type", "int8"], ["--row-type", "bfloat16"]:
            done = subprocess.run([*map(str, words), *more], capture_output=True, text=True,
                                  restore_signals=False,  # SIGXFSZ stays ignored: a write fails instead
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("embertable-bench: ", done.stderr)
            self.assertEqual(list(self.folder.glob("embertable-bench*")), [], more)

    def test_small_steps(self):
        code, out, err = call("small", "--threads", 2, "--repetitions", 1, "--rows", 3000, "--json")
        self.assertEqual(code, 0, err)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([(line["lookups"], line["in_cache"]) for line in lines],
                         [(n, cached) for cached in (True, False) for n in (100, 1000, 10000, 100000)])
        self.assertTrue(all(line["seconds"] > 0 and 0 <= line["paid_once"] <= 1 for line in lines), lines)

    def test_sweep_takes_threads_rows_and_batches(self):
        file = self.folder / "sweep.csv"
        code, out, err = call("sweep", *SMALL, "--json", "--quick", "--factor", "samples", "--csv", file)
        self.assertEqual(code, 0, err)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([(line["factor"], line["value"], line["threads"], line["rows"]) for line in lines],
                         [("samples", value, 2, 1000) for value in (1, 256, 4096)])
        rows = table(file)
        self.assertEqual([(row["samples"], row["threads"], row["rows"]) for row in rows],
                         [("1", "2", "1000"), ("256", "2", "1000"), ("4096", "2", "1000")])

    def test_common_options_may_stand_before_the_command(self):
        code, out, err = call(*SMALL, "--json", "--workload", "W4", "stages")
        self.assertEqual(code, 0, err)
        told = json.loads(out)
        self.assertEqual((told["workload"], told["threads"], told["rows"]), ("W4", 2, 1000))
        self.assertTrue(all(stage["ns"] >= 0 for stage in told["stages"].values()))

    def test_what_does_not_fit_into_memory_is_said(self):
        huge = 1 << 31
        file = self.folder / "huge.csv"
        code, out, err = call("sweep", "--rows", huge, "--quick", "--factor", "dim", "--csv", file)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, r"^the largest needs \d+\.\d GB, \d+\.\d GB are free\n$")
        self.assertRegex(err, r"dim 128, 2 threads: not run: needs \d+\.\d GB, \d+\.\d GB are free")
        self.assertRegex(table(file)[-1]["note"], r"^needs \d+\.\d GB; \d+\.\d GB are free$")
        for command in (), ("stages",), ("hosts",):
            code, _, err = call(*command, "--workload", "W1", "--rows", huge)
            self.assertEqual(code, 1)
            self.assertRegex(err, r"W1: needs \d+\.\d GB, \d+\.\d GB are free, of which 80 % may be taken")


class Hosts(unittest.TestCase):
    WORDS = ["hosts", "--rows", "1001", "--batches", "2", "--repetitions", "2", "--json"]

    def results(self, *command):
        """What a run prints, by workload."""
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return {line["workload"]: line for line in lines}

    def launcher(self):
        """mpirun with what Open MPI's needs here; MPICH's takes no such options."""
        mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
        if not mpirun:
            self.skipTest("there is no mpirun")
        version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
        crowded = ["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
        return [mpirun, *(crowded if "Open MPI" in version or "OpenRTE" in version else [])]

    def test_without_a_launcher_hosts_are_threads(self):
        results = self.results(PROGRAM, *self.WORDS)
        self.assertEqual(list(results), ["W1", "W2"])
        for result in results.values():
            self.assertEqual(list(result["lanes"]), ["threads", "one_host"])
            self.assertEqual((result["hosts"], result["rows"], result["batches"]), (2, 1001, 2))
            self.assertEqual(result["lanes"]["threads"]["of_threads"], 1)
            self.assertGreater(result["smallest_message_bytes"], 0)
            self.assertNotIn("message_bytes", result)

    def test_under_a_launcher_processes_are_hosts(self):
        words = [PROGRAM, *self.WORDS, "--workload", "W4"]
        alone = self.results(*words)["W4"]
        result = self.results(*self.launcher(), "-n", "2", *words, "--transport", "any")["W4"]
        self.assertEqual(result["digest"], alone["digest"])
        self.assertEqual(list(result["lanes"]), ["mpi", "threads", "one_host"])
        self.assertEqual((result["hosts"], result["transport"]), (2, "any"))
        self.assertEqual(result["smallest_message_bytes"], alone["smallest_message_bytes"])
        smallest = result["smallest_message_bytes"]
        self.assertTrue(smallest <= result["message_bytes"] <= 1.1 * smallest, result)
        self.assertGreater(result["messages_alone"], 0)

    def test_what_fails_on_one_process_fails_on_all(self):
        words = [PROGRAM, "hosts", "--workload", "W1", "--rows", str(1 << 31)]
        done = subprocess.run([*self.launcher(), "-n", "2", *words], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"host 0: W1: needs \d+\.\d GB")


class InTurns(unittest.TestCase):
    def call(self, *words):
        script = pathlib.Path(__file__).parent / "in_turns.py"
        done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def test_each_figure_of_each_load_is_compared(self):
        code, out, err = self.call(PROGRAM, PROGRAM, "--turns", "2", "--json", "--workload", "W1", "--workload", "W2", *SMALL)
        self.assertEqual((code, err), (0, ""))
        results = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([(result["load"][:2], result["figure"]) for result in results],
                         [(load, figure) for load in ("W1", "W2") for figure in ("forward", "backward", "step")])
        for result in results:
            self.assertEqual(result["turns"], 2)
            self.assertTrue(0 < result["lowest"] <= result["highest"], result)

    def test_a_rate_that_rises_and_a_time_that_falls_are_both_above_one(self):
        sys.path.insert(0, str(pathlib.Path(__file__).parent))
        import in_turns
        old = [{("a", "step"): 10.0, ("a", "mean_us"): 8.0}, {("a", "step"): 30.0, ("a", "mean_us"): 8.0}]
        new = [{("a", "step"): 20.0, ("a", "mean_us"): 4.0}, {("a", "step"): 30.0, ("a", "mean_us"): 2.0, ("b", "step"): 1.0}]
        step, mean = in_turns.ratios(old, new)
        self.assertEqual((step["ratio"], step["lowest"], step["highest"]), (1.25, 1, 2))
        self.assertEqual((mean["figure"], mean["lowest"], mean["highest"]), ("mean_us", 2, 4))
        self.assertAlmostEqual(mean["ratio"], 8 / 3)

    def test_what_cannot_run_is_named(self):
        code, out, err = self.call(PROGRAM, PROGRAM, "serving", "--rows", "3")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("serving --rows 3 failed: --rows: it is no option of 'serving'", err)
        self.assertIn("nowhere cannot be run: No such file or directory", self.call(PROGRAM, "nowhere")[2])
        self.assertIn("--turns must be 1 or more, got 0", self.call(PROGRAM, PROGRAM, "--turns", "0")[2])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
