"""The claims of scripts/build-times, on a made-up log and on a log that ninja writes."""
import unittest

from project import ProjectTest

BUILD_NINJA = """
build cmake_object_order_depends: phony
build sluice/queue/CMakeFiles/sluice_queue.dir/queue.cpp.o: CXX_COMPILER__sluice_queue_Release a.cpp
build sluice/queue/CMakeFiles/q_test.dir/Unity/unity_0_cxx.cxx.o: CXX_COMPILER__q_test_Release u.cpp
build sluice/queue/q_test: CXX_EXECUTABLE_LINKER__q_test_Release u.o
build jobs/store/sqlite/libs.a: CXX_STATIC_LIBRARY_LINKER__s_Release a.o
build tests/docs/page.txt tests/docs/list.txt | ${cmake_ninja_workdir}tests/docs/page.txt: \
CUSTOM_COMMAND x
build CMakeFiles/alone.dir/a.hpp.cpp.o: CXX_COMPILER__alone_Release a.cpp
"""
QUEUE = "sluice/queue/CMakeFiles/sluice_queue.dir/queue.cpp.o"
UNITY = "sluice/queue/CMakeFiles/q_test.dir/Unity/unity_0_cxx.cxx.o"


class BuildTimes(ProjectTest):
    def setUp(self):
        super().setUp()
        self.folder = self.root / "build/release"
        self.folder.mkdir(parents=True)
        (self.folder / "build.ninja").write_text(BUILD_NINJA)
        self.lines = []

    def step(self, build_second, start, end, output):
        mtime = (build_second * 1000 + end) * 1_000_000
        command = output.rpartition("/")[0]
        self.lines.append(f"{start}\t{end}\t{mtime}\t{output}\t{command}")

    def run_script(self, *arguments, text=None):
        text = text or "# ninja log v5\n" + "".join(f"{line}\n" for line in self.lines)
        (self.folder / ".ninja_log").write_text(text)
        return self.start("scripts/build-times", *arguments)

    def expect_error(self, run, text):
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn(text, run.stdout)
        self.assertIn("remove build/release and build it again", run.stdout)

    def rows(self, run):
        return {line.split()[0]: line.split()[1:] for line in run.stdout.splitlines()
                if line and line.split()[-1].isdigit()}

    def test_takes_the_last_step_of_each_output(self):
        self.step(100, 0, 9000, QUEUE)
        self.step(200, 0, 2000, QUEUE)
        self.step(200, 1000, 4000, UNITY)
        self.step(100, 0, 5000, "jobs/store/sqlite/libs.a")
        run = self.run_script()
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("last build: 4.0 s wall time, 5.0 s in 2 steps", run.stdout)
        rows = self.rows(run)
        self.assertEqual(rows["sluice/queue"], ["5.0", "2.0", "3.0", "0.0", "0.0", "2"])
        self.assertEqual(rows["jobs/store"], ["5.0", "0.0", "0.0", "5.0", "0.0", "0"])
        self.assertEqual(rows["all"][0], "10.0")

    def test_finds_the_last_build_in_a_log_without_order(self):
        self.step(200, 1000, 4000, UNITY)
        self.step(100, 0, 5000, "sluice/queue/q_test")
        self.step(200, 0, 2000, QUEUE)
        self.assertIn("last build: 4.0 s wall time, 5.0 s in 2 steps", self.run_script().stdout)

    def test_counts_a_step_with_two_outputs_once(self):
        self.step(100, 0, 1000, QUEUE)
        self.step(100, 0, 3000, "tests/docs/page.txt")
        self.step(100, 0, 3000, "tests/docs/list.txt")
        self.assertEqual(self.rows(self.run_script())["tests/docs"][0], "3.0")

    def test_leaves_out_outputs_that_are_not_built_any_longer(self):
        self.step(100, 0, 1000, QUEUE)
        self.step(100, 0, 3000, "sluice/queue/CMakeFiles/sluice_queue.dir/removed.cpp.o")
        run = self.run_script()
        self.assertEqual(self.rows(run)["all"][0], "1.0")
        self.assertNotIn("removed", run.stdout)

    def test_names_units_and_unity_files_by_target(self):
        self.step(100, 0, 1000, QUEUE)
        self.step(100, 0, 3000, UNITY)
        self.step(100, 0, 2000, "CMakeFiles/alone.dir/a.hpp.cpp.o")
        self.step(100, 3000, 7500, "sluice/queue/q_test")
        run = self.run_script()
        units = run.stdout.split("slowest translation units:\n")[1].split("\n\n")[0].splitlines()
        self.assertEqual([line.split() for line in units],
                         [["3.0", "s", "q_test/unity_0"], ["2.0", "s", "alone/a.hpp.cpp"],
                          ["1.0", "s", "sluice_queue/queue.cpp"]])
        self.assertTrue(run.stdout.endswith("slowest links:\n      4.5 s  sluice/queue/q_test\n"))
        self.assertEqual(self.rows(run)["alone"][0], "2.0")

    def test_refuses_a_missing_or_damaged_log(self):
        self.expect_error(self.start("scripts/build-times"), "No such file")
        self.expect_error(self.run_script(text="something else\n"), "line 1")
        self.expect_error(self.run_script(text="# ninja log v5\n"), "no translation unit")
        self.step(100, 0, 1000, QUEUE)
        self.lines.append("12\tx")
        self.expect_error(self.run_script(), "line 3 is damaged")
        (self.folder / "build.ninja").unlink()
        self.expect_error(self.run_script(), "build.ninja: No such file")

    def test_reads_the_log_that_ninja_writes(self):
        self.cmake[1] = "project(small LANGUAGES CXX)"
        self.cmake.append("add_executable(program main.cpp)")
        (self.root / "main.cpp").write_text("int main() {}\n")
        self.configure()
        built = self.start("cmake", "--build", "--preset", "release")
        self.assertEqual(built.returncode, 0, built.stdout)
        run = self.start("scripts/build-times", "release")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("s in 2 steps", run.stdout)
        self.assertIn("program/main.cpp", run.stdout)
        self.assertEqual(self.rows(run)["all"][-1], "1")


if __name__ == "__main__":
    unittest.main()
