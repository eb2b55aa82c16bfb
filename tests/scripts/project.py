"""A small project with a copy of this repository's scripts, whose tests are shell commands."""
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRESETS = """{
  "version": 6,
  "configurePresets": [
    {"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/release"},
    {"name": "asan", "inherits": "release", "binaryDir": "${sourceDir}/build/asan"},
    {"name": "tsan", "inherits": "release", "binaryDir": "${sourceDir}/build/tsan"},
    {"name": "debug", "inherits": "release", "binaryDir": "${sourceDir}/build/debug"}
  ],
  "buildPresets": [
    {"name": "release", "configurePreset": "release"},
    {"name": "asan", "configurePreset": "asan"},
    {"name": "tsan", "configurePreset": "tsan"},
    {"name": "debug", "configurePreset": "debug"}
  ],
  "testPresets": [
    {"name": "release", "configurePreset": "release", "output": {"outputOnFailure": true},
     "execution": {"timeout": 60}},
    {"name": "asan", "configurePreset": "asan", "output": {"outputOnFailure": true}},
    {"name": "tsan", "configurePreset": "tsan", "output": {"outputOnFailure": true}},
    {"name": "debug", "configurePreset": "debug", "output": {"outputOnFailure": true}}
  ]
}
"""


class ProjectTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "scripts").mkdir()
        for name in ("test", "scripts/run-tests", "scripts/stages.bash", "scripts/build-times"):
            shutil.copy2(ROOT / name, self.root / name)
        self.program("scripts/setup", "exit 0")
        (self.root / "CMakePresets.json").write_text(PRESETS)
        self.cmake = [
            "cmake_minimum_required(VERSION 3.25)",
            "project(small LANGUAGES NONE)",
            "enable_testing()",
        ]

    def program(self, path, script):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def add(self, name, script, **properties):
        """Adds a test that runs a shell script; in it, $n is the number of the run, from 1."""
        runs = shlex.quote(str(self.root / "runs" / re.sub(r"\W", "_", name)))
        count = f"mkdir -p $(dirname {runs})\necho >>{runs}\nn=$(wc -l <{runs})"
        path = self.program(f"tests/{len(self.cmake)}.sh", f"{count}\n{script}")
        self.cmake.append(f'add_test(NAME "{name}" COMMAND "{path}")')
        for key, value in properties.items():
            self.cmake.append(f'set_tests_properties("{name}" PROPERTIES {key} "{value}")')

    def runs(self, name):
        path = self.root / "runs" / re.sub(r"\W", "_", name)
        return len(path.read_text().splitlines()) if path.exists() else 0

    def start(self, *command, env=None):
        return subprocess.run(command, cwd=self.root, env=env, text=True, timeout=600,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)

    def configure(self, preset="release"):
        (self.root / "CMakeLists.txt").write_text("\n".join(self.cmake) + "\n")
        configured = self.start("cmake", "--preset", preset)
        self.assertEqual(configured.returncode, 0, configured.stdout)
