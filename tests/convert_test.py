"""Tables to and from the files of others, by the command line.

Usage: convert_test.py EMBERTABLE
"""

import gzip
import json
import math
import pathlib
import resource
import shutil
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


def lines(*words):
    """What a command prints as JSON."""
    code, out, err = call(*words, "--json")
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


def contents(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def array(path):
    """(shape, numbers) of an .npy file of float32."""
    content = path.read_bytes()
    assert content[:8] == b"\x93NUMPY\x01\x00"
    (size,) = struct.unpack_from("<H", content, 8)
    assert (10 + size) % 64 == 0
    header = eval(content[10:10 + size])  # as NumPy does, literally
    assert header["descr"] == "<f4" and not header["fortran_order"]
    return header["shape"], struct.unpack(f"<{(len(content) - 10 - size) // 4}f", content[10 + size:])


def write_array(path, shape, numbers, dtype="<f4", fortran=False, version=1):
    header = repr({"descr": dtype, "fortran_order": fortran, "shape": tuple(shape)}).encode() + b"\n"
    code = {"f4": "f", "f2": "e", "f8": "d"}[dtype[1:]]
    path.write_bytes(b"\x93NUMPY" + struct.pack("<BBH" if version == 1 else "<BBI", version, 0, len(header)) + header +
                     struct.pack(f"{dtype[0]}{len(numbers)}{code}", *numbers))


class Convert(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        run = SmallRun(cls.folder, PROGRAM)
        cls.saved = cls.folder / "saved"
        run.train(cls.saved)
        code, _, err = call("export", cls.saved, "--format", "npy", "--slots", "--out", cls.folder / "arrays")
        assert code == 0, err
        cls.arrays = contents(cls.folder / "arrays")
        cls.keys = {name: cls.arrays.pop(name) for name in list(cls.arrays) if name.endswith(".keys.txt")}

    def out(self, name="out"):
        path = self.folder / self.id().rsplit(".", 1)[-1]
        path.mkdir(exist_ok=True)
        return path / name

    def npy_of(self, run):
        code, _, err = call("export", run, "--format", "npy", "--slots", "--out", self.out("npy"))
        self.assertEqual(code, 0, err)
        return {name: data for name, data in contents(self.out("npy")).items() if name.endswith(".npy")}

    def test_arrays_are_those_of_the_checkpoint(self):
        shown = lines("inspect", self.saved)[0]
        names = {f"{variable['name'].replace('/', '.S')}.npy" for table in shown["tables"] for variable in table["variables"]}
        self.assertEqual(set(self.arrays), names)
        self.assertIn("user.Saccumulators.npy", names)
        shape, numbers = array(self.folder / "arrays" / "user.npy")
        self.assertEqual(shape, (300, 16))
        row = lines("lookup", self.saved, "--table", "user", "--row", "7")[0]["values"]
        self.assertEqual([struct.pack("<f", value) for value in row],
                         [struct.pack("<f", value) for value in numbers[7 * 16:8 * 16]])

    def test_arrays_have_the_keys_of_their_rows(self):
        self.assertEqual(set(self.keys), {"user.keys.txt", "item.keys.txt", "tag.keys.txt"})
        for table in "user", "item", "tag":
            keys = self.keys[f"{table}.keys.txt"].decode().split("\n")[:-1]
            shape, _ = array(self.folder / "arrays" / f"{table}.npy")
            self.assertEqual(len(keys), shape[0])
            for row in 0, 2, shape[0] - 1:
                (shown,) = lines("lookup", self.saved, "--table", table, "--row", row)
                self.assertEqual(shown.get("key", ""), keys[row])

    def test_an_export_removes_what_an_earlier_one_left_of_its_tables_alone(self):
        self.out().mkdir()
        for name in "user.Saccumulators.npy", "user.Slinears.npy", "user.Slong.npy", "user.Slong.keys.txt", "users.npy":
            (self.out() / name).write_bytes(b"earlier")
        lines("export", self.saved, "--format", "npy", "--out", self.out())
        self.assertEqual({name for name in contents(self.out()) if name.startswith("user") and name != "user.keys.txt"},
                         {"user.npy", "user.Slong.npy", "user.Slong.keys.txt", "users.npy"})

    def test_an_export_that_ends_too_early_leaves_no_keys_beside_rows_of_others(self):
        shutil.copytree(self.folder / "arrays", self.out())
        limit = len(self.arrays["user.npy"]) - 1
        done = subprocess.run([PROGRAM, "export", self.saved, "--format", "npy", "--table", "user", "--out", self.out()],
                              capture_output=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertNotEqual(done.returncode, 0)
        left = contents(self.out())
        self.assertEqual(left["user.npy"], self.arrays["user.npy"])
        self.assertNotIn("user.keys.txt", left)

    def test_slots_are_left_out_unless_asked_for(self):
        lines("export", self.saved, "--format", "npy", "--out", self.out())
        self.assertEqual({name for name in contents(self.out()) if name.endswith(".npy")},
                         {"user.npy", "item.npy", "tag.npy"})

    def test_neighbors_of_a_checkpoint_without_a_job(self):
        shutil.copytree(self.folder / "arrays", self.out("arrays"), ignore=shutil.ignore_patterns("*.keys.txt"))
        lines("import", self.out("arrays"), "--format", "npy", "--out", self.out())
        of, *near = lines("neighbors", self.out(), "--table", "item", "--row", 3, "--k", 4)
        self.assertEqual(of, {"table": "item", "row": 3})
        self.assertEqual([sorted(one) for one in near], [["cosine", "row"]] * 4)
        code, text, _ = call("neighbors", self.out(), "--table", "item", "--row", 3)
        self.assertEqual((code, text.split()[0]), (0, "3"))
        for words, says in ((("--row", 120), "table 'item': a row must be from 0 to 119, got 120"),
                            (("--row", -1), "--row: must be a whole number of at least 0, got '-1'"),
                            (("--row", "010"), "--row: must be a whole number of at least 0, got '010'"),
                            (("--row", ""), "--row: must be a whole number of at least 0, got ''"),
                            (("--key", 7), "table 'item' has no keys: no id map has its name and its number of rows"),
                            (("--key", ""), "table 'item' has no keys: no id map has its name and its number of rows")):
            code, _, err = call("neighbors", self.out(), "--table", "item", *words)
            self.assertEqual(code, 2 if says.startswith("--") else 1)
            self.assertIn(says, err)

    def test_a_checkpoint_to_serve_in_int8(self):
        told = lines("export", self.saved, "--format", "int8", "--out", self.out())
        self.assertEqual([(one["name"], one["shape"]) for one in told],
                         [(one["name"], one["shape"]) for one in lines("export", self.saved, "--format", "npy", "--out",
                                                                       self.out("npy"))])
        self.assertEqual(call("verify", self.out())[0], 0)
        shown = lines("inspect", self.out())[0]
        for table in shown["tables"]:
            self.assertEqual([(v["name"], v["dtype"]) for v in table["variables"]], [(table["name"], "U8")])
            _, numbers = array(self.folder / "arrays" / f"{table['name']}.npy")
            dim = table["dim"]
            for row in sorted({0, table["rows"] // 2, table["rows"] - 1}):
                (got,) = lines("lookup", self.out(), "--table", table["name"], "--row", row)
                want = numbers[row * dim:(row + 1) * dim]
                scale = (max(want) - min(want)) / 255
                for a, b in zip(got["values"], want):
                    self.assertLessEqual(abs(a - b), scale * 0.501 + 1e-7)
        of, *near = lines("neighbors", self.out(), "--table", "item", "--row", 3, "--k", 3)
        exact_of, *exact = lines("neighbors", self.saved, "--table", "item", "--row", 3, "--k", 3)
        self.assertEqual(of, exact_of)
        for a, b in zip(near, exact):
            self.assertAlmostEqual(a["cosine"], b["cosine"], delta=0.02)
        code, _, err = call("export", self.saved, "--format", "int8", "--out", self.out())
        self.assertEqual(code, 1)
        self.assertIn("is already saved there", err)
        code, _, err = call("export", self.saved, "--format", "int8", "--slots", "--out", self.out("slots"))
        self.assertEqual(code, 1)
        self.assertIn("slots must stay behind in int8", err)
        self.assertFalse(self.out("slots").exists())

    def test_through_npy_and_back(self):
        told = lines("import", self.folder / "arrays", "--format", "npy", "--out", self.out())
        self.assertEqual(told[-1]["left_out"], [])
        self.assertEqual(self.npy_of(self.out()), self.arrays)
        self.assertEqual(call("verify", self.out())[0], 0)
        shown = lines("inspect", self.out())[0]
        self.assertEqual([table["name"] for table in shown["tables"]], ["item", "tag", "user"])
        self.assertEqual([v["name"] for v in shown["tables"][2]["variables"]], ["user", "user/accumulators"])

    def test_keys_go_through_npy_and_back(self):
        lines("import", self.folder / "arrays", "--format", "npy", "--out", self.out())
        keys = self.keys["item.keys.txt"].decode().split("\n")
        (row,) = lines("lookup", self.out(), "--table", "item", "--key", keys[40])
        self.assertEqual((row["row"], row["key"]), (40, keys[40]))
        of, *near = lines("neighbors", self.out(), "--table", "item", "--key", keys[3], "--k", 4)
        self.assertEqual(of, {"table": "item", "row": 3, "key": keys[3]})
        self.assertEqual([one["key"] for one in near], [keys[one["row"]] for one in near])
        self.npy_of(self.out())
        self.assertEqual({name: data for name, data in contents(self.out("npy")).items() if name in self.keys}, self.keys)
        lines("import", self.folder / "arrays" / "user.npy", "--format", "npy", "--table", "person=user.npy",
              "--out", self.out("person"))
        (row,) = lines("lookup", self.out("person"), "--table", "person", "--row", 7)
        self.assertEqual(row["key"], self.keys["user.keys.txt"].decode().split("\n")[7])
        shutil.copytree(self.folder / "arrays", self.out("bad"))
        (self.out("bad") / "item.keys.txt").write_text("1\n2\n")
        code, _, err = call("import", self.out("bad"), "--format", "npy", "--out", self.out("none"))
        self.assertEqual(code, 1)
        self.assertIn("item.keys.txt:2: there must be a line for each of 120 rows, got 2", err)
        self.assertFalse(self.out("none").exists())

    def test_an_export_leaves_no_slots_and_keys_of_an_earlier_one(self):
        lines("export", self.saved, "--format", "npy", "--slots", "--out", self.out())
        for name in "other.Saccumulators.npy", "other.keys.txt", "user.txt":
            (self.out() / name).write_text("mine")
        shutil.copytree(self.folder / "arrays", self.out("bare"), ignore=shutil.ignore_patterns("*.keys.txt"))
        lines("import", self.out("bare"), "--format", "npy", "--out", self.out("keyless"))
        lines("export", self.out("keyless"), "--format", "npy", "--table", "user", "--out", self.out())
        self.assertEqual(set(contents(self.out())), {
            "user.npy", "item.npy", "item.Saccumulators.npy", "item.keys.txt", "tag.npy", "tag.Saccumulators.npy",
            "tag.keys.txt", "other.Saccumulators.npy", "other.keys.txt", "user.txt"})

    def test_through_a_tensor_bundle_and_back(self):
        for shards in (0, 3, 7, 1000):
            bundle = self.out(f"tf{shards}")
            told = lines("export", self.saved, "--format", "tf", "--slots", "--out", bundle, "--shards", shards)
            self.assertIn({"name": "user/accumulators", "shape": [300, 16],
                           "place": "embedding/user.Saccumulators/.ATTRIBUTES/VARIABLE_VALUE"}, told)
            self.assertEqual(sorted(contents(bundle)), ["checkpoint", "ckpt-1.data-00000-of-00001", "ckpt-1.index"])
            for path in (bundle, bundle / "ckpt-1", bundle / "ckpt-1.index"):
                run = self.out(f"run{shards}{path.name}")
                told = lines("import", path, "--format", "tf", "--out", run)
                self.assertEqual(told[-1]["left_out"], [])
                self.assertEqual(self.npy_of(run), self.arrays)
                shutil.rmtree(self.out("npy"))

    def test_a_bundle_of_chosen_tables(self):
        code, _, err = call("export", self.saved, "--format", "tf", "--out", self.out(), "--table", "user",
                            "--object", "model/users")
        self.assertEqual(code, 0, err)
        told = lines("import", self.out(), "--format", "tf", "--out", self.out("run"),
                     "--table", "u=model/users/user", "--step", "12", "--combiner", "sum")
        self.assertEqual(told[0], {"name": "u", "shape": [300, 16],
                                   "place": "model/users/user/.ATTRIBUTES/VARIABLE_VALUE"})
        shown = lines("inspect", self.out("run"))[0]
        self.assertEqual((shown["step"], shown["tables"][0]["combiner"]), (12, "sum"))
        code, _, err = call("import", self.out(), "--format", "tf", "--out", self.out("run"), "--step", "12")
        self.assertEqual(code, 1)
        self.assertIn("step 12 is already saved there", err)

    def test_a_trained_run_gets_no_step_of_tables_alone(self):
        shutil.copytree(self.saved, self.out("trained"))
        call("export", self.saved, "--format", "tf", "--out", self.out())
        code, _, err = call("import", self.out(), "--format", "tf", "--out", self.out("trained"), "--step", "9999")
        self.assertEqual(code, 1)
        self.assertIn(f"'{self.out('trained')}' must not be a run of `embertable train`", err)
        self.assertEqual(call("eval", self.out("trained"), "--data", self.folder)[0], 0)
        older, *_, newest = sorted(self.saved.glob("step_*"))
        for step in older, newest:  # rows that none trains
            lines("export", step, "--format", "int8", "--out", self.out("served"))
        code, _, err = call("export", self.saved, "--format", "int8", "--out", self.out("trained"))
        self.assertEqual(code, 1)
        self.assertIn("must not be a run of `embertable train`", err)

    def test_options_of_other_formats_are_refused(self):
        for words, said in ((("npy", "--object", "a"), "--object: is of --format tf"),
                            (("npy", "--shards", "2"), "--shards: is of --format tf"),
                            (("tf", "--binary"), "--binary: is of --format word2vec"),
                            (("int8", "--label", "row"), "--label: is of --format word2vec")):
            code, _, err = call("export", self.saved, "--out", self.out(), "--format", *words)
            self.assertEqual(code, 2)
            self.assertIn(said, err)
            self.assertFalse(self.out().exists())
        code, _, err = call("export", self.saved, "--out", self.out(), "--format", "word2vec", "--slots")
        self.assertEqual(code, 1)
        self.assertIn("slots must stay behind in word2vec", err)

    def test_import_says_what_is_wrong(self):
        call("export", self.saved, "--format", "tf", "--out", self.out())
        for words, said in [(["--table", "usr"], "there is no array 'usr'"),
                            (["--table", "u="], "must be NAME or NAME=SOURCE, got 'u='"),
                            (["--table", "user", "--slot", "user/a"], "a slot must be TABLE/SLOT=KEY, got 'user/a'"),
                            (["--table", "user", "--slot", "item/a=item"], "slot 'item/a': must be TABLE/SLOT of an imported"),
                            (["--table", "user", "--slot", "user/a=item"], "slot 'user/a': must be [300, 16] or [300]")]:
            code, out, err = call("import", self.out(), "--format", "tf", "--out", self.out("run"), *words)
            self.assertEqual((code, out), (1, ""), said)
            self.assertIn(said, err)
        for path, said in [(self.folder / "none", "none.index"), (self.folder, "names no checkpoint that is there")]:
            code, _, err = call("import", path, "--format", "tf", "--out", self.out("run"))
            self.assertEqual(code, 1)
            self.assertIn(said, err)
        self.assertEqual(call("import", self.out(), "--format", "tg", "--out", self.out("run"))[0], 2)
        self.assertEqual(call("import", self.out(), "--out", self.out("run"))[0], 2)
        code, _, err = call("export", self.saved, "--format", "tf", "--out", self.out(), "--table", "usr")
        self.assertEqual(code, 1)
        self.assertIn("has no table 'usr'; the nearest is 'user'", err)

    def test_a_dim_that_no_table_has_takes_no_memory(self):
        self.out().mkdir()
        path = self.out() / "wide.npy"
        write_array(path, [1, 4294967300], [])
        with path.open("ab") as file:
            file.truncate(path.stat().st_size + 4 * 4294967300)  # a hole
        code, out, err = call("import", path, "--format", "npy", "--out", self.out("run"))
        self.assertEqual((code, out), (1, ""))
        self.assertIn("table 'wide': dim must be 1..4096, got 'wide.npy' of [1, 4294967300]", err)

    def test_a_folder_in_the_place_of_a_file_stays(self):
        for format, name in [("tf", "checkpoint"), ("npy", "user.npy")]:
            folder = self.out(format)
            (folder / name / "kept").mkdir(parents=True)
            code, _, err = call("export", self.saved, "--format", format, "--out", folder)
            self.assertEqual(code, 1)
            self.assertIn(f"{name}: cannot replace: it is a directory", err)
            self.assertTrue((folder / name / "kept").is_dir())
            self.assertEqual(list(folder.glob("*.tempstate*")), [])

    def test_a_damaged_bundle_leaves_no_step(self):
        call("export", self.saved, "--format", "tf", "--out", self.out(), "--shards", "2")
        (data,) = self.out().glob("*.data-*")
        content = bytearray(data.read_bytes())
        content[5000] ^= 4
        data.write_bytes(content)
        code, _, err = call("import", self.out(), "--format", "tf", "--out", self.out("run"))
        self.assertEqual(code, 1)
        self.assertIn("Checksum does not match", err)
        self.assertEqual(list(self.out("run").glob("*step*")), [])

    def test_what_is_no_table_is_told_of(self):
        golden = pathlib.Path(__file__).resolve().parent / "golden/bundles.json.gz"
        bundle = json.loads(gzip.open(golden).read())["sharded"]
        self.out().mkdir()
        for name, digits in bundle["files"].items():
            (self.out() / name).write_bytes(bytes.fromhex(digits))
        told = lines("import", self.out("out") / "ckpt", "--format", "tf", "--out", self.out("run"))
        used = {one["place"] for one in told[:-1]} | set(told[-1]["left_out"])
        all_keys = {tensor["key"] for tensor in bundle["truth"]["tensors"]}
        self.assertEqual(all_keys - used, {"_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter/.ATTRIBUTES/VARIABLE_VALUE"})
        self.assertEqual(len(used), len(told) - 1 + len(told[-1]["left_out"]))
        fits = [tensor for tensor in bundle["truth"]["tensors"]
                if tensor["dtype"] in ("float32", "float16", "bfloat16") and len(tensor["shape"]) == 2]
        self.assertEqual({one["place"] for one in told[:-1]}, {tensor["key"] for tensor in fits})

    def test_npy_of_others(self):
        self.out().mkdir()
        write_array(self.out() / "a.Sb.npy", (2, 3), range(6))
        write_array(self.out() / "a.Sb.Scounts.npy", (2,), [7, 8])
        write_array(self.out() / "half.npy", (2, 2), [0.5, -2, 65504, 6e-8], "<f2")
        write_array(self.out() / "line.npy", (5,), range(5))
        told = lines("import", self.out(), "--format", "npy", "--out", self.out("run"))
        self.assertEqual([(one["name"], one["shape"]) for one in told[:-1]],
                         [("a/b", [2, 3]), ("a/b/counts", [2]), ("half", [2, 2])])
        self.assertEqual(told[-1]["left_out"], ["line.npy"])
        self.npy_of(self.out("run"))
        self.assertEqual(array(self.out("npy") / "half.npy"), ((2, 2), (0.5, -2.0, 65504.0, 2.0 ** -24)))
        self.assertEqual(array(self.out("npy") / "a.Sb.Scounts.npy"), ((2,), (7.0, 8.0)))
        for dtype, version in [(">f4", 1), (">f2", 2), ("<f4", 2), ("<f2", 3)]:
            shutil.rmtree(self.out("npy"))
            write_array(self.out("other.npy"), (2, 2), [1, -2, 0.25, 3], dtype, version=version)
            code, _, err = call("import", self.out("other.npy"), "--format", "npy", "--out", self.out(f"run{dtype[1:]}{version}"))
            self.assertEqual((code, err), (0, ""))
            self.npy_of(self.out(f"run{dtype[1:]}{version}"))
            self.assertEqual(array(self.out("npy") / "other.npy"), ((2, 2), (1.0, -2.0, 0.25, 3.0)))
        for name, arguments, said in [("double", ((1, 1), [1], "<f8"), "must be float32 or float16, got '<f8'"),
                                      ("columns", ((1, 2), [1, 2], "<f4", True), "must be stored by rows"),
                                      ("short", ((3, 2), [1, 2]), "expected 6 numbers of 4 bytes for the shape [3, 2], got 8 bytes")]:
            write_array(self.out(f"{name}.npy"), *arguments)
            code, _, err = call("import", self.out(f"{name}.npy"), "--format", "npy", "--out", self.out("run2"))
            self.assertEqual(code, 1)
            self.assertIn(said, err)

    def words(self, *words):
        return lines("export", self.saved, "--format", "word2vec", *words)

    def test_words_are_keys_and_come_back(self):
        self.words("--out", self.out("user.txt"), "--table", "user")
        self.words("--out", self.out("user.bin"), "--table", "user", "--binary")
        text = self.out("user.txt").read_text().splitlines()
        self.assertEqual(text[0], "300 16")
        self.assertEqual(len(text), 301)
        for line, row in zip(text[1:4], lines("lookup", self.saved, "--table", "user", "--row", 0, 1, 2)):
            self.assertEqual(line.split()[0], row["key"])
        (self.out("user.txt.gz")).write_bytes(gzip.compress(self.out("user.txt").read_bytes()))
        for name, words in [("user.txt", []), ("user.bin", ["--binary"]), ("user.txt.gz", ["--table", "user"])]:
            run = self.out("run." + name)
            told = lines("import", self.out(name), "--format", "word2vec", "--out", run, *words)
            self.assertEqual((told[0]["name"], told[0]["shape"]), ("user", [300, 16]))
            found = self.npy_of(run)
            self.assertEqual(found, {"user.npy": self.arrays["user.npy"]})
            shutil.rmtree(self.out("npy"))
            key = text[200].split()[0]
            row = lines("lookup", run, "--table", "user", "--key", key)[0]
            self.assertEqual((row["row"], row["key"]), (199, key))
            self.assertEqual(call("neighbors", run, "--table", "user", "--key", key)[0], 0)

    def test_words_of_all_tables_and_names(self):
        told = self.words("--out", self.out())
        self.assertEqual(sorted(contents(self.out())), ["item.txt", "tag.txt", "user.txt"])
        self.assertEqual([one["name"] for one in told], ["item", "tag", "user"])
        self.words("--out", self.out("item.txt"), "--table", "item", "--label", "name")
        names = [line.split()[0] for line in self.out("item.txt").read_text().splitlines()[1:]]
        self.assertIn("Item_13", names)
        for table in "user", "tag":  # only items have names
            code, _, err = call("export", self.saved, "--format", "word2vec", "--out", self.out("w"), "--table", table, "--label", "name")
            self.assertEqual(code, 1)
            self.assertIn(f"table '{table}' must have names to be words, got none: a job gives them to ids by a section [names.IDS]", err)
            self.assertFalse(self.out("w").exists())
        self.words("--out", self.out("named"), "--label", "name")
        self.assertEqual(contents(self.out("named"))["user.txt"], contents(self.out())["user.txt"])
        self.words("--out", self.out("rows.txt"), "--table", "item", "--label", "row")
        rows = [line.split()[0] for line in self.out("rows.txt").read_text().splitlines()[1:]]
        self.assertEqual(rows, [str(row) for row in range(len(rows))])
        self.assertEqual(len(set(names)), len(rows))

    def test_a_zero_keeps_its_sign(self):
        self.out("w.txt").write_text("1 4\na -0 0 -1 0.5\n")
        lines("import", self.out("w.txt"), "--format", "word2vec", "--out", self.out("run"))
        (row,) = lines("lookup", self.out("run"), "--table", "w", "--row", 0)
        self.assertEqual([math.copysign(1, value) for value in row["values"]], [-1, 1, -1, 1])

    def test_words_of_others(self):
        def refusal(text, *words):
            self.out("w.txt").write_bytes(text)
            code, _, err = call("import", self.out("w.txt"), "--format", "word2vec", "--out", self.out("run"), *words)
            self.assertEqual(len(list(self.out("run").glob("*step*"))), 0 if code else 1)
            return err if code == 1 else ""
        one = struct.pack("<2f", 1, 2)
        for text, said, *words in [
                (b"", ":1: the file is empty"),
                (b"king 1 2\n", ":1: the first line must be the number of rows and of columns, got 'king 1 2'"),
                (b"0 2\n", ":1: the first line must be"),
                (b"2 2\na 1 2\n", ":3: there must be 2 rows, got 1"),
                (b"1 2\na 1 2\nb 1 2\n", ":3: there must be 1 rows, got more"),
                (b"1 2\na 1\n", ":2: a line must be a word and 2 numbers, got '' as number 1 of them"),
                (b"1 2\na 1 x\n", "got 'x' as number 2 of them"),
                (b"1 2\n1 2\n", ":2: a line must be a word and 2 numbers, got '' as number 1 of them"),
                (b"2 2\na 1 2\na 3 4\n", ":3: a word must name one row, got 'a' again"),
                (b"1 9999\n", "dim must be 1..4096, got 9999"),
                (b"2 2\na " + one, "the file ends; there must be 2 rows", "--binary"),
                (b"1 2\na " + one + b"x", "there must be 1 rows, got more", "--binary"),
                (b"1 2\n " + one, "a word must not be empty", "--binary")]:
            self.assertIn(said, refusal(text, *words))
        self.assertIn(":2: a number must fit into float32, got '1e60'", refusal(b"1 2\na 1e60 1\n"))
        self.assertEqual(refusal(b"1 3\nsmall 1e-60 1e-400 1e-44\n", "--table", "tiny", "--step", "1"), "")
        values = lines("lookup", self.out("run"), "--table", "tiny", "--key", "small")[0]["values"]
        self.assertEqual([struct.pack("<f", value) for value in values],
                         [struct.pack("<f", value) for value in (0.0, 0.0, 1e-44)])
        shutil.rmtree(self.out("run"))
        self.assertEqual(refusal(b"2 2 \r\nNew York 1e-3 -inf \r\n\xc3\xa9 0.1 nan\r\n\n"), "")
        rows = lines("lookup", self.out("run"), "--table", "w", "--key", "New York", "\u00e9")
        self.assertEqual([row["key"] for row in rows], ["New York", "\u00e9"])
        code, _, err = call("export", self.out("run"), "--format", "word2vec", "--out", self.out("again.txt"))
        self.assertEqual(code, 1)
        self.assertIn("the word of row 0 must have no blanks and not be empty, got 'New York'", err)
        self.assertFalse(self.out("again.txt").exists())

    def tearDown(self):
        self.assertEqual([*self.folder.rglob("*tempstate*")], [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
