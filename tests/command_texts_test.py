"""Completion scripts, the manual page, the doctor: what the command line says of itself.

Usage: command_texts_test.py EMBERTABLE
"""

import functools
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from small_run import SmallRun

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.path.abspath(sys.argv[1])


@functools.cache
def output(*words):
    return subprocess.run([PROGRAM, *map(str, words)], check=True, capture_output=True, text=True).stdout


def commands():
    """The subcommands, as the help lists them."""
    listed = output("--help").split("Subcommands:\n")[1]
    return re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)


def options(command):
    """The long options of a subcommand, as its help lists them."""
    return set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", output(command, "--help"), re.MULTILINE))


def all_completed(*lines):
    """What bash offers for the last word of each of these lists of words."""
    code = output("completion", "bash") + """
for line in "$@"; do
  IFS=' ' read -r -a COMP_WORDS <<<"$line"
  [ "${line: -1}" != ' ' ] || COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _embertable
  echo "${COMPREPLY[@]}"
done
"""
    texts = [" ".join(["embertable", *words]) for words in lines]
    done = subprocess.run(["bash", "-c", code, "bash", *texts], check=True, capture_output=True, text=True)
    return [line.split() for line in done.stdout.splitlines()]


def completed(*words):
    return all_completed(words)[0]


class Completion(unittest.TestCase):
    def test_bash_offers_commands(self):
        self.assertEqual(set(completed("")) - {"--help", "--version"}, set(commands()))
        self.assertEqual(completed("pre"), ["predict"])

    def test_bash_offers_the_options_of_the_command(self):
        for command, offered in zip(commands(), all_completed(*((command, "--") for command in commands())), strict=True):
            self.assertEqual(set(offered), options(command), command)
        self.assertEqual(completed("train", "job.toml", "--over"), ["--overwrite"])

    def test_bash_offers_the_values_of_an_option(self):
        self.assertEqual(completed("train", "--exchange", ""), ["mpi", "torch"])
        self.assertEqual(completed("export", "--format", "n"), ["npy"])
        self.assertEqual(completed("completion", ""), ["bash", "zsh", "fish"])

    def test_bash_leaves_files_to_the_shell(self):
        self.assertEqual(completed("train", "--out", "--x"), [])
        self.assertEqual(completed("train", "job"), [])

    def test_zsh_and_fish_know_every_option(self):
        zsh, fish = output("completion", "zsh"), output("completion", "fish")
        for command in commands():
            in_zsh = re.search(rf"^    {command}\) _arguments.*?;;$", zsh, re.MULTILINE | re.DOTALL).group()
            in_fish = re.findall(rf"from {command}' -l ([\w-]+)", fish)
            self.assertEqual(set(re.findall(r"'\*?(--[\w-]+)\[", in_zsh)), options(command), command)
            self.assertEqual({f"--{name}" for name in in_fish}, options(command), command)

    def test_shells_that_are_here_read_their_scripts(self):
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell):
                subprocess.run([shell, "-n"], input=output("completion", shell), check=True, text=True)

    def test_another_shell_is_refused(self):
        done = subprocess.run([PROGRAM, "completion", "tcsh"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("tcsh", done.stderr)


class Manual(unittest.TestCase):
    def test_it_has_every_command_and_option(self):
        page = output("manual").replace("\\-", "-")
        self.assertTrue(page.startswith(".TH EMBERTABLE 1 "))
        for command in commands():
            section = re.search(rf"^\.SS {command}\n(.*?)(?=^\.S[SH] )", page, re.MULTILINE | re.DOTALL).group(1)
            self.assertEqual(set(re.findall(r"^\.B (--[\w-]+)", section, re.MULTILINE)), options(command), command)

    def test_its_exit_codes_are_those_of_the_documents(self):
        page = output("manual").replace("\\-", "-")
        shown = re.findall(r"^\.TP\n\.B (.+)\n(.+)$", page.split(".SH EXIT STATUS\n")[1].split(".SH")[0], re.MULTILINE)
        section = (ROOT / "docs/command_line.md").read_text().split("## Exit codes\n")[1].split("\n## ")[0]
        rows = re.findall(r"^\| ([\d, ]+) \| (.+) \|$", section, re.MULTILINE)
        self.assertEqual([(code, meaning.replace("`", "")) for code, meaning in rows], shown)
        self.assertEqual([code for code, _ in shown], ["0", "1", "2", "75", "130, 143"])

    @unittest.skipUnless(shutil.which("groff"), "needs groff")
    def test_groff_has_nothing_to_say(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=output("manual"), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Doctor(unittest.TestCase):
    def test_every_finding_is_good_or_says_what_to_change(self):
        with tempfile.TemporaryDirectory() as folder:
            findings = json.loads(output("doctor", folder, "--json"))["findings"]
            self.assertEqual([one["subject"] for one in findings], ["version", "SIMD level", "threads", "huge pages", "memory",
                                                                    "limits", "folder", "MPI"])
            for one in findings:
                self.assertEqual(one["good"], not one["advice"])
            self.assertEqual(os.listdir(folder), [])

    def test_a_low_limit_is_told(self):
        done = subprocess.run(["bash", "-c", 'ulimit -n 100; "$0" doctor', PROGRAM], check=True, capture_output=True, text=True,
                              cwd=tempfile.gettempdir())
        self.assertIn("CHANGE limits      100 open files", done.stdout)
        self.assertIn("ulimit -n 256", done.stdout)

    def test_a_folder_that_cannot_be_used_is_told(self):
        self.assertIn("CHANGE folder", output("doctor", "/proc"))


class Terminal(unittest.TestCase):
    """`train` draws a bar where it is watched, and prints lines elsewhere."""

    def test_a_terminal_gets_a_bar_and_a_pipe_does_not(self):
        with tempfile.TemporaryDirectory() as scratch:
            run = SmallRun(pathlib.Path(scratch), PROGRAM)
            words = [word for word in run.command(pathlib.Path(scratch) / "watched", "--set", "schedule.epochs=20")
                     if word != "--json"]
            try:
                main, other = pty.openpty()
            except OSError as error:
                self.skipTest(f"no terminal can be made: {error}")
            process = subprocess.Popen(words, stdout=other)
            os.close(other)
            seen = b""
            while True:
                try:
                    part = os.read(main, 65536)
                except OSError:  # the terminal is closed
                    break
                if not part:
                    break
                seen += part
            os.close(main)
            self.assertEqual(process.wait(), 0)
            self.assertRegex(seen.decode(), r"\r  epoch +\d+/20 \[=* *\] rmse [\d.]+  [\d.]+ M samples/s  \d+:\d\d left ")
            words[words.index(str(pathlib.Path(scratch) / "watched"))] = str(pathlib.Path(scratch) / "piped")
            piped = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            self.assertNotIn("\r", piped)
            self.assertEqual(len(re.findall(r"^  epoch +\d+/20  rate ", piped, re.MULTILINE)), 20)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
