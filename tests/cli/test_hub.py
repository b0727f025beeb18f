"""Models by name, against a server on this machine that speaks the hub's endpoints and fails on request."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from fake_hub import COMMIT, FakeHub
from gguf_split import split
from support import BIN, ModelTest, Pty, clean_environment, run

PROMPT = ("--raw", "-p", "7 5 2", "-n", "4")


class HubTest(ModelTest):
    def setUp(self):
        super().setUp()
        self.hub = FakeHub()
        self.addCleanup(self.hub.close)
        self.cache = self.work / "home" / "hub"
        self.env = {"HF_HOME": str(self.work / "home"), "HF_ENDPOINT": self.hub.endpoint, "no_proxy": "*", "HF_TOKEN": "",
                    "HF_HUB_CACHE": "", "HUGGINGFACE_HUB_CACHE": "", "HF_HUB_OFFLINE": "", "HF_HUB_DOWNLOAD_TIMEOUT": "2"}
        self.base = self.model.base.read_bytes()
        self.sidecar = self.model.sidecar.read_bytes()

    def run_hub(self, *args, **kwargs):
        return run(*args, env={**self.env, **kwargs.pop("env", {})}, **kwargs)

    def ok(self, *args, **kwargs):
        done = self.run_hub(*args, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr or done.stdout)
        return done

    def fails(self, pattern, *args, code=1, **kwargs):
        done = self.run_hub(*args, **kwargs)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertRegex(done.stderr, r"(?m)^error: " + pattern)
        self.assertNotIn("terminate", done.stderr)
        return done

    def repo_folder(self, repo="me/tiny"):
        return self.cache / ("models--" + repo.replace("/", "--"))

    def blob(self, data, repo="me/tiny"):
        return self.repo_folder(repo) / "blobs" / hashlib.sha256(data).hexdigest()


class Downloads(HubTest):
    def setUp(self):
        super().setUp()
        self.hub.repos["me/tiny"] = {"README.md": b"# tiny", "tiny-Q8_0.gguf": self.base, "tiny-BF16.gguf": b"GGUF" + bytes(99),
                                     "mmproj-tiny-Q4_K_M.gguf": b"GGUF"}

    def test_the_cache_has_the_layout_of_huggingface_hub(self):
        path = self.ok("pull", "me/tiny").stdout.strip()
        folder = self.repo_folder()
        self.assertEqual(path, str(folder / "snapshots" / COMMIT / "tiny-Q8_0.gguf"))
        self.assertEqual(os.readlink(path), "../../blobs/" + hashlib.sha256(self.base).hexdigest())
        self.assertEqual(self.blob(self.base).read_bytes(), self.base)
        self.assertEqual((folder / "refs" / "main").read_text(), COMMIT)
        self.assertEqual(list(folder.glob("blobs/*.incomplete")), [])

    def test_a_second_pull_downloads_nothing(self):
        self.ok("pull", "me/tiny:q8_0")
        again = json.loads(self.ok("pull", "me/tiny:Q8_0", "--json").stdout)
        self.assertEqual((again["status"], again["downloaded"], again["size"]), ("ok", 0, len(self.base)))
        self.assertEqual(len(self.hub.downloads()), 1)

    def test_every_command_takes_a_name(self):
        answer = run("run", "-m", self.model.base, *PROMPT).stdout
        self.assertEqual(self.ok("run", "-hf", "me/tiny", *PROMPT).stdout, answer)
        self.assertEqual(self.ok("run", "--hf-repo", "me/tiny", "-hff", "tiny-Q8_0.gguf", *PROMPT).stdout, answer)
        self.assertEqual(self.ok("run", "-hf", "me/tiny:tiny-Q8_0.gguf", "--offline", *PROMPT).stdout, answer)
        self.assertIn("tiny-Q8_0.gguf", self.ok("info", "-hf", "me/tiny").stdout)
        self.ok("quantize", "-hf", "me/tiny", self.work / "q4.gguf", "Q4_0")
        self.ok("export", self.model.sidecar, "-hf", "me/tiny", "-o", self.work / "bundle.gguf", "--as", "bundle")
        self.ok("bench", "-hf", "me/tiny", "--prompt", 4, "--gen", 2, "-r", 1)
        data = self.work / "data"
        self.ok("data", "listops", "--out", data, "--train", 4, "--valid", 2, "--test", 2)
        self.ok("eval", "-hf", "me/tiny", "--data", data / "test.jsonl", "-n", 2)
        self.ok("train", "-hf", "me/tiny", "--method", "cot", "--data", data, "--out", self.work / "run", "--dry-run")
        self.assertEqual(len(self.hub.downloads()), 1)

    def test_names_and_files_exclude_each_other(self):
        self.fails(".*exclude each other", "run", "-hf", "me/tiny", "-m", self.model.base, *PROMPT, code=2)
        self.fails("--hf-file: needs", "run", "-m", self.model.base, "-hff", "x.gguf", *PROMPT, code=2)
        self.fails(".*is not USER/REPO", "run", "-hf", "tiny", *PROMPT, code=2)
        self.fails(".*is not USER/REPO", "pull", "../../etc/passwd", code=2)
        self.fails(".*is not USER/REPO", "rm", "me/..", code=2)
        # A flag counts more than the environment.
        self.ok("run", "-hf", "me/tiny", *PROMPT, env={"PENELOPE_MODEL": "/nowhere.gguf"})

    def test_the_choice_of_a_file(self):
        self.fails(r"me/tiny: has no 'F16'\nhint: it has BF16, Q8_0", "pull", "me/tiny:F16")
        self.hub.repos["me/tiny"]["x/tiny-q4_k_m.gguf"] = self.sidecar
        self.assertTrue(self.ok("pull", "me/tiny").stdout.strip().endswith("x/tiny-q4_k_m.gguf"))
        self.hub.repos["me/none"] = {"README.md": b""}
        self.fails("me/none: has no GGUF file", "pull", "me/none")

    def test_a_file_outside_lfs_is_checked_too(self):
        self.hub.plain.add("tiny-Q8_0.gguf")
        self.ok("pull", "me/tiny")
        self.hub.repos["me/bad"] = {"tiny-Q8_0.gguf": self.base}
        self.hub.corrupt["tiny-Q8_0.gguf"] = bytes(len(self.base))
        self.fails("me/bad/tiny-Q8_0.gguf: wrong checksum", "pull", "me/bad")

    def test_split_files(self):
        parts = split(self.model.base, self.work / "tiny-Q4_K_M", 7)
        for part in parts:
            self.hub.repos["me/tiny"]["Q4_K_M/" + part.name] = part.read_bytes()
        answer = run("run", "-m", self.model.base, *PROMPT).stdout
        self.assertEqual(self.ok("run", "-hf", "me/tiny", *PROMPT).stdout, answer)
        self.assertEqual(len(self.hub.downloads()), len(parts))
        listed = json.loads(self.ok("list", "--json").stdout)["models"]
        self.assertEqual([(m["name"], len(m["files"]), m["complete"]) for m in listed],
                         [("me/tiny:Q4_K_M", len(parts), True)])
        del self.hub.repos["me/tiny"]["Q4_K_M/" + parts[1].name]
        self.fails("me/tiny: the repository has no .*00002-of", "pull", "me/tiny")


class Failures(HubTest):
    def setUp(self):
        super().setUp()
        self.big = self.base + bytes(2_000_000)
        self.hub.repos["me/tiny"] = {"tiny-Q8_0.gguf": self.big}

    def incomplete(self):
        return self.blob(self.big).with_name(self.blob(self.big).name + ".incomplete")

    def test_no_such_model(self):
        self.fails(r"me/nothing: 404.*'Repository not found'.*\nhint: check the name", "pull", "me/nothing")

    def test_gated(self):
        self.hub.gated["me/tiny"] = "hf_secret"
        self.fails(r"me/tiny: 401: not public.*\nhint: .*accept its terms at http.*/me/tiny and set HF_TOKEN", "pull", "me/tiny")
        self.fails(r"me/tiny: 401: the token gives no access", "pull", "me/tiny", "-hft", "hf_wrong")
        self.fails("--hf-token: not an access token", "pull", "me/tiny", "-hft", "a\nb: c", code=2)
        self.ok("pull", "me/tiny", env={"HF_TOKEN": "hf_secret"})
        (self.work / "home" / "token").write_text("hf_secret\n")
        shutil.rmtree(self.cache)
        self.ok("pull", "me/tiny")

    def test_the_token_stays_with_its_host(self):
        self.ok("pull", "me/tiny", "--hf-token", "hf_secret")
        for server, path, headers in self.hub.requests:
            self.assertEqual(headers.get("Authorization"), "Bearer hf_secret" if server == "api" else None, path)

    def test_redirects_to_other_protocols_are_refused(self):
        self.hub.redirect = "file:///etc/passwd"
        self.fails("me/tiny/tiny-Q8_0.gguf: the server's redirect was refused: .*[Pp]rotocol", "pull", "me/tiny")
        self.assertFalse(self.blob(self.big).exists())

    def test_a_cut_connection_goes_on(self):
        self.hub.cuts = [300_000, 500_000, 0]
        done = self.ok("pull", "me/tiny")
        self.assertRegex(done.stderr, "trying again, .* are here")
        ranges = [headers.get("Range") for _, _, headers in self.hub.downloads()]
        self.assertEqual(ranges[:2], [None, "bytes=300000-"])
        self.assertEqual(self.blob(self.big).read_bytes(), self.big)

    def test_a_later_process_goes_on(self):
        self.hub.cuts = [300_000, 0, 0, 0, 0, 0]
        self.fails(r"me/tiny/tiny-Q8_0.gguf: the download stopped at 293 KiB of .*\nhint: run the command again", "pull", "me/tiny")
        self.assertEqual(self.incomplete().read_bytes(), self.big[:300_000])
        self.hub.cuts = []
        self.hub.sent = 0
        self.ok("pull", "me/tiny")
        self.assertEqual(self.hub.sent, len(self.big) - 300_000)
        self.assertEqual(self.blob(self.big).read_bytes(), self.big)

    def test_a_server_without_ranges_sends_all_again(self):
        self.hub.ranges = False
        self.hub.cuts = [300_000]
        self.ok("pull", "me/tiny")
        self.assertEqual(self.blob(self.big).read_bytes(), self.big)

    def test_corrupted_bytes(self):
        self.hub.corrupt["tiny-Q8_0.gguf"] = b"X" + self.big[1:]
        self.fails(r"me/tiny/tiny-Q8_0.gguf: wrong checksum: expected \w{64}, found \w{64}", "pull", "me/tiny")
        self.assertEqual(list(self.repo_folder().glob("blobs/*")), [])
        self.hub.corrupt.clear()
        self.ok("pull", "me/tiny")

    def test_wrong_bytes_of_an_earlier_attempt(self):
        self.incomplete().parent.mkdir(parents=True)
        self.incomplete().write_bytes(b"X" * 1000)
        self.ok("pull", "me/tiny")
        self.assertEqual(self.blob(self.big).read_bytes(), self.big)

    def test_more_bytes_than_announced(self):
        self.hub.sizes["tiny-Q8_0.gguf"] = len(self.big) - 10
        self.fails("me/tiny/tiny-Q8_0.gguf: the server sends more than", "pull", "me/tiny")

    def test_a_full_disk(self):
        self.hub.sizes["tiny-Q8_0.gguf"] = 1 << 60
        self.fails(r"tiny-Q8_0.gguf: the disk is full: needs .*free in", "pull", "me/tiny")
        self.hub.sizes.clear()
        # A limit on the size of files ends writes as a full disk does.
        limited = subprocess.run(["bash", "-c", 'trap "" XFSZ; ulimit -f 1000; exec "$@"', "-", BIN, "pull", "me/tiny"],
                                 env=clean_environment(self.env), capture_output=True, text=True, timeout=60)
        self.assertEqual(limited.returncode, 1, limited.stderr)
        self.assertRegex(limited.stderr, r"error: .*incomplete'.*: cannot be written: File too large\nhint: free some space")
        self.ok("pull", "me/tiny")

    def test_a_slow_server(self):
        self.hub.chunk, self.hub.delay = 300_000, 0.1
        self.ok("pull", "me/tiny")

    def test_a_server_that_stalls(self):
        self.hub.cuts, self.hub.stall = [300_000], 6
        self.ok("pull", "me/tiny", env={"HF_HUB_DOWNLOAD_TIMEOUT": "1"})
        self.assertEqual(self.blob(self.big).read_bytes(), self.big)

    def test_errors_of_the_server(self):
        self.hub.status = 503
        self.fails(r"me/tiny: http://127\S* answers 503.*\nhint: try again later", "pull", "me/tiny")

    def test_no_network(self):
        nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9"}
        done = self.fails(r"me/tiny: http://127.0.0.1:9 cannot be reached: ", "run", "-hf", "me/tiny", *PROMPT, env=nowhere)
        self.assertEqual(len(done.stderr.splitlines()), 2, done.stderr)
        self.hub.repos["me/tiny"] = {"tiny-Q8_0.gguf": self.base}
        self.ok("pull", "me/tiny")
        self.assertRegex(self.ok("run", "-hf", "me/tiny", *PROMPT, env=nowhere).stderr, "warning: .*using the copy in the cache")

    def test_offline(self):
        self.fails(r"me/tiny: not in the cache .*offline\nhint: .*penelope pull me/tiny", "run", "-hf", "me/tiny", "--offline", *PROMPT)
        self.fails("me/tiny: not in the cache", "pull", "me/tiny", env={"HF_HUB_OFFLINE": "1"})
        self.assertEqual(self.hub.requests, [])

    def test_names_that_lead_out_of_the_repository(self):
        for name in ("../evil.gguf", "/evil.gguf", "a/../../evil.gguf", "a//b.gguf", "a\\b.gguf", "a\nb.gguf"):
            self.hub.repos["me/tiny"] = {name: self.base}
            self.fails("me/tiny: the server's listing makes no sense: the file name .* leads out", "pull", "me/tiny")
        self.assertEqual([p for p in self.work.rglob("*") if p.suffix == ".gguf"], [])

    def test_answers_that_are_no_listing(self):
        self.hub.repos["me/tiny"] = {"x.gguf": b"1"}
        self.hub.sizes["x.gguf"] = "many"
        self.fails("me/tiny: the server's listing makes no sense", "pull", "me/tiny")
        self.fails("HF_ENDPOINT: 'ftp://x' is not an http", "pull", "me/tiny", env={"HF_ENDPOINT": "ftp://x"}, code=2)

    def test_two_at_once(self):
        self.hub.chunk, self.hub.delay = 200_000, 0.1
        both = [subprocess.Popen([BIN, "pull", "me/tiny"], env=clean_environment(self.env), stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True) for _ in range(2)]
        results = [(*process.communicate(timeout=60), process.returncode) for process in both]
        self.assertEqual([code for _, _, code in results], [0, 0], results)
        self.assertEqual(len({out for out, _, _ in results}), 1)
        self.assertIn("another process downloads it", "".join(err for _, err, _ in results))
        self.assertEqual(len(self.hub.downloads()), 1)

    def test_an_interrupted_download_keeps_what_has_come(self):
        self.hub.chunk, self.hub.delay = 100_000, 0.2
        process = subprocess.Popen([BIN, "pull", "me/tiny"], env=clean_environment(self.env), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 30
        while self.hub.sent < 300_000 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, err)
        self.assertRegex(err, "interrupted: .* are kept")
        self.assertGreater(self.incomplete().stat().st_size, 100_000)
        self.hub.delay = 0
        self.ok("pull", "me/tiny")

    def test_progress_on_a_terminal(self):
        self.hub.chunk, self.hub.delay = 200_000, 0.15
        with Pty("pull", "me/tiny", env=self.env) as terminal:
            terminal.expect(r"tiny-Q8_0.gguf: \d+ % of 3.\d+ MiB \| [\d.]+ [KM]iB/s \| [\d.]+ m?s left")
            self.assertEqual(terminal.wait(), 0)


class Cache(HubTest):
    def setUp(self):
        super().setUp()
        self.hub.repos["me/tiny"] = {"tiny-Q8_0.gguf": self.base, "tiny-F32.gguf": self.base}
        self.hub.repos["me/other"] = {"other-Q4_0.gguf": self.sidecar}

    def test_list_and_rm(self):
        self.assertIn("no models in", self.ok("list").stderr)
        self.ok("pull", "me/tiny:Q8_0", "me/tiny:F32", "me/other")
        table = self.ok("list").stdout
        self.assertRegex(table, r"name +\| quant +\| size +\| last used")
        self.assertRegex(table, r"me/tiny:Q8_0 +\| Q8_0 +\| +\S+ \wiB +\| 20\d\d-\d\d-\d\d \d\d:\d\d")
        models = json.loads(self.ok("list", "--json").stdout)["models"]
        self.assertEqual([m["name"] for m in models], ["me/other:Q4_0", "me/tiny:F32", "me/tiny:Q8_0"])
        # Both names of me/tiny lead to the same bytes: they go with the last one.
        self.assertEqual(self.ok("rm", "me/tiny:Q8_0").stdout, "removed me/tiny/tiny-Q8_0.gguf\n0 B freed\n")
        self.assertTrue(self.blob(self.base).exists())
        gone = json.loads(self.ok("rm", "me/tiny", "--json").stdout)
        self.assertEqual((gone["files"], gone["freed"]), (["tiny-F32.gguf"], len(self.base)))
        self.assertFalse(self.repo_folder().exists())
        self.fails("me/tiny: not in the cache", "rm", "me/tiny")
        self.assertEqual([m["name"] for m in json.loads(self.ok("list", "--json").stdout)["models"]], ["me/other:Q4_0"])

    def test_files_of_other_programs_stay(self):
        self.ok("pull", "me/tiny:Q8_0")
        config = self.repo_folder() / "snapshots" / COMMIT / "config.json"
        (self.repo_folder() / "blobs" / "abc").write_text("{}")
        config.symlink_to("../../blobs/abc")
        self.ok("rm", "me/tiny")
        self.assertEqual(config.read_text(), "{}")
        self.assertFalse(self.blob(self.base).exists())

    def test_what_huggingface_hub_stored_is_used(self):
        snapshot = self.repo_folder() / "snapshots" / COMMIT
        snapshot.mkdir(parents=True)
        (self.repo_folder() / "refs").mkdir()
        (self.repo_folder() / "refs" / "main").write_text(COMMIT)
        self.blob(self.base).parent.mkdir()
        self.blob(self.base).write_bytes(self.base)
        (snapshot / "tiny-Q8_0.gguf").symlink_to("../../blobs/" + self.blob(self.base).name)
        self.ok("run", "-hf", "me/tiny:Q8_0", *PROMPT)
        self.assertEqual(self.hub.downloads(), [])


class Sidecars(HubTest):
    """A sidecar made for a backbone that came by name says where that is."""

    def setUp(self):
        super().setUp()
        self.hub.repos["me/tiny"] = {"tiny-Q8_0.gguf": self.base}
        self.ok("pull", "me/tiny")
        made = self.work / "sidecar.gguf"
        case = self.model.sidecar.parent
        self.ok("export", self.model.sidecar, "-hf", "me/tiny", "-o", self.work / "dir", "--as", "penelope")
        stated = json.loads((self.work / "dir" / "penelope_config.json").read_text())["base"]
        self.assertEqual((stated["repo"], stated["file"]), ("me/tiny", "tiny-Q8_0.gguf"))
        self.ok("convert", self.work / "dir", "-o", made, "--base", self.model.base, "--lora", self.work / "dir" / "lora")
        self.assertTrue(case.exists())
        self.hub.repos["you/sidecar"] = {"side-Q8_0.gguf": made.read_bytes()}
        self.answer = run("run", "-m", self.model.base, "--sidecar", self.model.sidecar, *PROMPT).stdout

    def test_info_names_the_backbone(self):
        self.assertRegex(self.ok("info", "-hf", "you/sidecar").stdout, r"backbone +me/tiny:tiny-Q8_0.gguf")

    def test_a_sidecar_by_name(self):
        self.assertEqual(self.ok("run", "-hf", "me/tiny", "--sidecar-hf", "you/sidecar", *PROMPT).stdout, self.answer)
        self.assertEqual(self.ok("run", "-m", self.model.base, "--sidecar-hf", "you/sidecar:side-Q8_0.gguf", *PROMPT).stdout, self.answer)
        self.fails("--sidecar-hf me/tiny: is not a sidecar", "run", "-m", self.model.base, "--sidecar-hf", "me/tiny", *PROMPT, code=2)
        self.fails(".*exclude each other", "run", "-m", self.model.base, "--sidecar-hf", "you/sidecar", "--sidecar", self.model.sidecar,
                   *PROMPT, code=2)

    def test_the_backbone_is_found(self):
        # It is there already.
        self.assertEqual(self.ok("run", "-hf", "you/sidecar", *PROMPT).stdout, self.answer)
        self.ok("rm", "me/tiny")
        self.fails(r"you/sidecar: is a sidecar, and its backbone me/tiny:tiny-Q8_0.gguf \(.*\) is not downloaded\n"
                   r"hint: add --yes, or: penelope run -hf me/tiny:tiny-Q8_0.gguf --sidecar-hf you/sidecar",
                   "run", "-hf", "you/sidecar", *PROMPT)
        self.assertEqual(self.ok("run", "-hf", "you/sidecar", "--yes", *PROMPT).stdout, self.answer)

    def test_it_asks_on_a_terminal(self):
        self.ok("rm", "me/tiny")
        with Pty("run", "-hf", "you/sidecar", *PROMPT, env=self.env) as terminal:
            terminal.expect(r"you/sidecar is a sidecar. Download its backbone me/tiny:tiny-Q8_0.gguf \(.*\)\? \[Y/n\] ")
            terminal.send("n\n")
            terminal.expect("you/sidecar: its backbone was not downloaded")
            self.assertEqual(terminal.wait(), 1)
        with Pty("run", "-hf", "you/sidecar", *PROMPT, env=self.env) as terminal:
            terminal.expect(r"\[Y/n\] ")
            terminal.interrupt()
            self.assertEqual(terminal.wait(), 130)
        with Pty("run", "-hf", "you/sidecar", *PROMPT, env=self.env) as terminal:
            terminal.expect(r"\[Y/n\] ")
            terminal.send("\n")
            terminal.expect(self.answer.strip().split("\n")[0])
            self.assertEqual(terminal.wait(), 0)

    def test_a_sidecar_that_does_not_say(self):
        self.hub.repos["you/silent"] = {"side-Q8_0.gguf": self.sidecar}
        self.fails(r"you/silent: is a sidecar for '.*' and does not say where its backbone is\nhint: penelope run -m BACKBONE.gguf "
                   r"--sidecar-hf you/silent", "run", "-hf", "you/silent", *PROMPT)

    def test_training_remembers_the_backbone(self):
        data = self.work / "data"
        self.ok("data", "listops", "--out", data, "--train", 4, "--valid", 2, "--test", 2)
        self.ok("train", "-hf", "me/tiny", "--method", "penelope", "--data", data, "--out", self.work / "run", "--updates", 1)
        base = json.loads(self.ok("info", self.work / "run" / "model.gguf", "--json").stdout)["sidecar"]["base"]
        self.assertEqual((base["repo"], base["file"]), ("me/tiny", "tiny-Q8_0.gguf"))


if __name__ == "__main__":
    unittest.main()
