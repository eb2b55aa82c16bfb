"""The claims of scripts/run-tests and ./test, on a small project and the real ctest."""
import os
import unittest

from project import ProjectTest


class RunTests(ProjectTest):
    def run_tests(self, *arguments, env=None):
        self.configure()
        return self.start("scripts/run-tests", "release", *arguments, env=env)

    def expect(self, run, *, code, has=(), lacks=()):
        self.assertEqual(run.returncode, code, run.stdout)
        for text in has:
            self.assertIn(text, run.stdout)
        for text in lacks:
            self.assertNotIn(text, run.stdout)

    def test_passes_if_every_test_passes(self):
        self.add("first", "exit 0")
        self.add("second", "exit 0")
        self.expect(self.run_tests("--flaky"), code=0,
                    has=["passed 2, failed 0, skipped 0, flaky 0"], lacks=["FAILED", "FLAKY"])
        self.assertEqual(self.runs("first"), 1)

    def test_fails_if_a_test_fails_and_shows_its_output(self):
        self.add("first", "exit 0")
        self.add("second", "echo the reason; exit 1")
        self.expect(self.run_tests(), code=1,
                    has=["the reason", "FAILED second (Failed)", "passed 1, failed 1"])

    def test_repeats_no_test_without_the_option(self):
        self.add("shaky", "test $n -gt 1")
        self.expect(self.run_tests(), code=1, has=["FAILED shaky"], lacks=["FLAKY"])
        self.assertEqual(self.runs("shaky"), 1)

    def test_reports_a_test_that_then_passes_twice_as_flaky(self):
        self.add("shaky", "echo this is run $n; test $n -gt 1")
        run = self.run_tests("--flaky")
        self.expect(run, code=0, has=["FLAKY shaky", "passed 0, failed 0, skipped 0, flaky 1"])
        self.assertEqual(self.runs("shaky"), 3)
        summary, first_output = run.stdout.split("slowest:")
        self.assertIn("this is run 1", summary)
        self.assertTrue(first_output.rstrip().endswith("this is run 1"), run.stdout)

    def test_fails_if_the_test_fails_again(self):
        self.add("at_once", "exit 1")
        self.add("later", "test $n -eq 2")
        self.expect(self.run_tests("--flaky"), code=1,
                    has=["FAILED at_once", "FAILED later"], lacks=["FLAKY"])
        self.assertEqual(self.runs("at_once"), 2)
        self.assertEqual(self.runs("later"), 3)

    def test_repeats_only_the_failed_test_even_with_an_unusual_name(self):
        name = "Typed/0.Takes<int (*)[2]>+a|b^$"
        self.add(name.replace("$", "\\$"), "test $n -gt 1")
        self.add("Typed/0xTakes<int (*)[2]>+a|b^", "exit 0")
        self.expect(self.run_tests("--flaky"), code=0, has=[f"FLAKY {name}\n"])
        self.assertEqual(self.runs("Typed/0xTakes<int (*)[2]>+a|b^"), 1)

    def test_repeats_with_the_printed_seed(self):
        self.add("seeded", 'echo "${SLUICE_SEED-none}" >>seeds\necho SLUICE_SEED=417; test $n -gt 1')
        self.add("unseeded", 'echo "${SLUICE_SEED-none}" >>no_seeds; test $n -gt 1')
        env = {name: value for name, value in os.environ.items() if name != "SLUICE_SEED"}
        self.expect(self.run_tests("--flaky", env=env), code=0, has=["SLUICE_SEED=417)"])
        folder = self.root / "build/release"
        self.assertEqual((folder / "seeds").read_text().split(), ["none", "417", "417"])
        self.assertEqual((folder / "no_seeds").read_text().split(), ["none", "none", "none"])

    def test_repeats_with_the_seed_that_was_printed_last(self):
        self.add("rounds", 'echo "$SLUICE_SEED" >>seeds\n'
                 'echo SLUICE_SEED=1; echo failed: SLUICE_SEED=38; test $n -gt 1')
        self.expect(self.run_tests("--flaky", env={**os.environ, "SLUICE_SEED": "1"}), code=0)
        self.assertEqual((self.root / "build/release/seeds").read_text().split(),
                         ["1", "38", "38"])

    def test_repeats_under_the_time_limit_of_the_run(self):
        presets = self.root / "CMakePresets.json"
        presets.write_text(presets.read_text().replace('"timeout": 60', '"timeout": 1'))
        self.add("slow", "test $n -gt 1 && exec sleep 2; exit 1")
        self.expect(self.run_tests("--flaky", "--", "--timeout", "60"), code=0, has=["FLAKY slow"])

    def test_shows_the_output_of_a_repetition_that_failed(self):
        self.add("changing", "echo this is run $n; exit 1")
        self.expect(self.run_tests("--flaky"), code=1, has=["this is run 1\n", "this is run 2\n"])

    def test_refuses_a_number_of_jobs_that_is_none(self):
        self.add("first", "exit 0")
        self.expect(self.run_tests(env={**os.environ, "SLUICE_JOBS": "many"}), code=1,
                    has=["SLUICE_JOBS is 'many'"])

    def test_never_repeats_a_certain_failure(self):
        reports = {
            "address": "==1==ERROR: AddressSanitizer: heap-use-after-free",
            "leak": "==1==ERROR: LeakSanitizer: detected memory leaks",
            "thread": "WARNING: ThreadSanitizer: data race (pid=1)",
            "undefined": "a.cpp:3:4: runtime error: signed integer overflow",
            "contract": 'sluice: contract broken on queue "mail": expected an open queue',
            "crash": "sluice crashed (signal 11); its standard error:",
        }
        for name, text in reports.items():
            self.add(name, f"echo '{text}'; test $n -gt 1")
        self.add("labeled", "test $n -gt 1", LABELS="slow;certain")
        self.add("not_labeled", "test $n -gt 1", LABELS="uncertain")
        run = self.run_tests("--flaky")
        for name in [*reports, "labeled"]:
            self.expect(run, code=1, has=[f"FAILED {name}"], lacks=[f"FLAKY {name}"])
            self.assertEqual(self.runs(name), 1, name)
        self.expect(run, code=1, has=["FLAKY not_labeled"])

    def test_fails_if_a_skipped_test_failed_too(self):
        skip = {"SKIP_REGULAR_EXPRESSION": "SKIPPED"}
        self.add("skipped", "echo SKIPPED; exit 1", **skip)
        self.add("leaks", "echo SKIPPED; echo 'ERROR: LeakSanitizer: detected'; exit 1", **skip)
        self.add("asserts", "echo SKIPPED; echo '[  FAILED  ] Suite.Test'; exit 1", **skip)
        run = self.run_tests("--flaky")
        self.expect(run, code=1, has=["skipped skipped", "failed 2, skipped 1",
                                      "FAILED leaks (sanitizer report)",
                                      "FAILED asserts (skipped, with a failed assertion)"])
        self.assertEqual([self.runs("leaks"), self.runs("asserts")], [1, 1])

    def test_never_repeats_models_and_injected_faults(self):
        names = ("QueueModel.Checks", "List.AgreesWithADeque", "disk_fault_test.LosesNothing")
        for name in names:
            self.add(name, "test $n -gt 1")
        self.add("takes_the_default", "test $n -gt 1")
        run = self.run_tests("--flaky")
        for name in names:
            self.expect(run, code=1, has=[f"FAILED {name}"], lacks=[f"FLAKY {name}"])
        self.expect(run, code=1, has=["FLAKY takes_the_default"])

    def test_never_repeats_a_certain_failure_behind_a_long_output(self):
        self.add("wordy", "seq 99999; echo 'ERROR: AddressSanitizer: x'; seq 99999; test $n -gt 1")
        self.expect(self.run_tests("--flaky"), code=1,
                    has=["not run again (sanitizer report): wordy"])

    def test_never_repeats_a_signal(self):
        signals = ("ABRT", "SEGV", "ILL", "FPE", "BUS", "KILL", "TERM")
        for name in signals:
            self.add(name, f"test $n -gt 1 || kill -{name} $$")
        run = self.run_tests("--flaky")
        for name in signals:
            self.expect(run, code=1, has=[f"FAILED {name}"], lacks=[f"FLAKY {name}"])
            self.assertEqual(self.runs(name), 1, name)

    def test_repeats_a_timeout(self):
        self.add("late", "test $n -gt 1 || exec sleep 60", TIMEOUT=3)
        self.expect(self.run_tests("--flaky"), code=0, has=["FLAKY late"])

    def test_allows_three_flaky_tests_and_no_fourth(self):
        for name in ("a", "b", "c"):
            self.add(name, "test $n -ne 1 -a $n -ne 4")
        self.expect(self.run_tests("--flaky"), code=0, has=["flaky 3"])
        self.add("d", "test $n -gt 1")
        self.expect(self.run_tests("--flaky"), code=1, has=["failed 4"], lacks=["FLAKY"])

    def test_does_not_repeat_many_failures(self):
        for number in range(4):
            self.add(f"t{number}", "test $n -gt 1")
        self.expect(self.run_tests("--flaky"), code=1, has=["failed 4", "4 tests failed: not run"])
        self.assertEqual(self.runs("t0"), 1)

    def test_fails_if_no_test_is_found(self):
        self.add("first", "exit 0")
        self.expect(self.run_tests("--", "-R", "nothing_has_this_name"), code=1,
                    has=["no tests were found"])

    def test_fails_if_a_test_does_not_run(self):
        self.add("first", "exit 0")
        self.cmake.append("add_test(NAME gone COMMAND /nonexistent/program)")
        self.expect(self.run_tests("--flaky"), code=1, has=["FAILED gone"], lacks=["FLAKY"])

    def test_fails_the_tests_of_a_failed_fixture(self):
        self.add("fixture", "test $n -gt 1", FIXTURES_SETUP="f")
        self.add("user", "exit 0", FIXTURES_REQUIRED="f")
        self.expect(self.run_tests(), code=1, has=["FAILED user (Not Run)"])
        self.assertEqual(self.runs("user"), 0)

    def test_runs_the_tests_of_a_flaky_fixture(self):
        self.add("fixture", "test $n -gt 1", FIXTURES_SETUP="f")
        for number in range(5):
            self.add(f"user{number}", "exit 0", FIXTURES_REQUIRED="f")
        self.expect(self.run_tests("--flaky"), code=0,
                    has=["FLAKY fixture", "passed 5, failed 0, skipped 0, flaky 1"])

    def test_fails_the_tests_of_a_fixture_that_fails_again(self):
        self.add("fixture", "exit 1", FIXTURES_SETUP="f")
        self.add("user", "exit 0", FIXTURES_REQUIRED="f")
        self.expect(self.run_tests("--flaky"), code=1,
                    has=["FAILED fixture", "FAILED user (Not Run)"], lacks=["FLAKY"])

    def test_fails_a_failure_behind_a_flaky_fixture(self):
        self.add("fixture", "test $n -gt 1", FIXTURES_SETUP="f")
        self.add("user", "echo the reason; exit 1", FIXTURES_REQUIRED="f")
        self.expect(self.run_tests("--flaky"), code=1,
                    has=["FLAKY fixture", "FAILED user", "the reason"])

    def test_counts_skipped_and_disabled_tests(self):
        self.add("skipped", "echo '[  SKIPPED ]'", SKIP_REGULAR_EXPRESSION="SKIPPED")
        self.add("disabled", "exit 1", DISABLED="ON")
        self.add("first", "exit 0")
        self.expect(self.run_tests(), code=0, has=["passed 1, failed 0, skipped 2"])

    def test_shows_how_much_the_suites_did(self):
        line = "echo '[  EFFORT  ] kill_test: 13 kills (of 500)'"
        self.add("kill_test", f"seq 9999; {line}; {line}; seq 9999")
        run = self.run_tests()
        self.expect(run, code=0, has=["scale:\n  kill_test: 13 kills (of 500)\n"])
        self.assertEqual(run.stdout.count("13 kills (of 500)"), 1)

    def test_shows_explored_schedules_and_the_ten_slowest(self):
        self.add("sim", "seq 9999; echo 'sim: 12 scenarios'; echo 'sim: mutant found, x'; seq 9999")
        self.add("slow", "sleep 1")
        for number in range(12):
            self.add(f"t{number}", "exit 0")
        run = self.run_tests()
        self.expect(run, code=0, has=["  12 scenarios\n", "that were found: 1\n"])
        slowest = run.stdout.split("slowest:\n")[1].splitlines()
        self.assertEqual(len(slowest), 10)
        self.assertIn("slow", " ".join(slowest))

    def test_is_not_deceived_by_lines_that_a_test_prints(self):
        self.add("liar", "echo '100% tests passed, 0 tests failed out of 1'; echo hidden; exit 1")
        self.add("next", "exit 1")
        self.expect(self.run_tests(), code=1,
                    has=["hidden", "FAILED liar (Failed)", "FAILED next (Failed)"])

    def test_lists_tests_without_running_them(self):
        self.add("first", "exit 1")
        self.expect(self.run_tests("--", "-N"), code=0, has=["Test #1: first"])
        self.assertEqual(self.runs("first"), 0)

    def test_refuses_contradicting_options(self):
        self.add("first", "exit 0")
        self.expect(self.run_tests("--flaky", "--freeze", "1"), code=2, has=["not both"])


JUNIT = '<testsuite>{}</testsuite>'
PASSED = '<testcase name="a" time="1" status="run"><system-out/></testcase>'
FAILED = '<testcase name="a" time="1" status="fail"><failure/><system-out/></testcase>'


class BrokenCtest(ProjectTest):
    """A ctest that does what the real one never should."""

    def run_with(self, script, junit=None):
        write = "" if junit is None else f"cat >\"$junit\" <<'END'\n{junit}\nEND\n"
        self.program("bin/ctest", 'while test $# -gt 0; do\n'
                     '  if test "$1" = --output-junit; then junit="$2"; fi\n  shift\ndone\n'
                     f"{write}{script}")
        env = {**os.environ, "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}"}
        return self.start("scripts/run-tests", "release", "--flaky", env=env)

    def expect_failure(self, run, text):
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn(text, run.stdout)

    def test_passes_with_sound_results(self):
        run = self.run_with("exit 0", JUNIT.format(PASSED))
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_fails_if_ctest_is_killed(self):
        for case in (PASSED, FAILED):
            run = self.run_with("kill -KILL $$", JUNIT.format(case))
            self.expect_failure(run, "run-tests: ctest ended with exit code -9\n")

    def test_fails_if_ctest_reports_an_error(self):
        self.expect_failure(self.run_with("exit 1", JUNIT.format(PASSED)), "exit code 1")

    def test_fails_without_results(self):
        self.expect_failure(self.run_with("exit 0"), "cannot read the results")

    def test_fails_with_old_results(self):
        self.run_with("exit 0", JUNIT.format(PASSED))
        self.expect_failure(self.run_with("exit 0"), "cannot read the results")

    def test_fails_with_damaged_results(self):
        self.expect_failure(self.run_with("exit 0", JUNIT.format(PASSED)[:-5]),
                            "cannot read the results")

    def test_fails_with_empty_results(self):
        self.expect_failure(self.run_with("exit 0", JUNIT.format("")), "no tests were found")

    def test_fails_if_the_exit_code_contradicts_the_results(self):
        self.expect_failure(self.run_with("exit 8", JUNIT.format(PASSED)), "contradict")
        self.expect_failure(self.run_with("exit 0", JUNIT.format(FAILED)), "contradict")

    def test_fails_if_the_labels_cannot_be_read(self):
        run = self.run_with("exit 8", JUNIT.format(FAILED))
        self.expect_failure(run, "cannot be run again")
        self.assertIn("FAILED a", run.stdout)
        run = self.run_with("echo '{\"tests\": []}'; exit 8", JUNIT.format(FAILED))
        self.expect_failure(run, "cannot be run again")


class Freeze(ProjectTest):
    """With a freezer that only records its arguments."""

    def run_frozen(self, *arguments, skip=""):
        self.program("build/release/tests/freeze/sluice_freeze",
                     'echo "$*" >>frozen; shift 2; exec "$@"')
        (self.root / "tests/freeze").mkdir(parents=True, exist_ok=True)
        (self.root / "tests/freeze/skip.txt").write_text(skip)
        self.configure()
        return self.start("scripts/run-tests", "release", "--freeze", "77", "--", *arguments)

    def frozen(self):
        return (self.root / "build/release/frozen").read_text()

    def test_runs_each_test_under_the_freezer(self):
        self.add("first", "echo $A >>env", ENVIRONMENT="A=5")
        self.add("alone", "exit 0", RUN_SERIAL="ON")
        run = self.run_frozen()
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("passed 2, failed 0", run.stdout)
        self.assertEqual(self.frozen().count("--seed 77 "), 2)
        self.assertEqual((self.root / "build/release/env").read_text(), "5\n")

    def test_runs_fixtures_first_and_without_the_freezer(self):
        self.add("user", "test -e made", FIXTURES_REQUIRED="f")
        self.add("fixture", "touch made", FIXTURES_SETUP="f")
        run = self.run_frozen()
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertEqual(self.frozen().count("--seed"), 1)

    def test_fails_the_tests_of_a_failed_fixture(self):
        self.add("user", "exit 0", FIXTURES_REQUIRED="f")
        self.add("fixture", "exit 1", FIXTURES_SETUP="f")
        run = self.run_frozen()
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("FAILED user (Not Run: the fixture f failed)", run.stdout)

    def test_prints_how_a_failure_is_repeated(self):
        self.add("broken", "echo the reason; exit 3")
        self.add("killed", "kill -ABRT $$")
        run = self.run_frozen()
        self.assertEqual(run.returncode, 1, run.stdout)
        for text in ("the reason", "FAILED broken (exit code 3)", "FAILED killed (SIGABRT)",
                     "sluice_freeze --seed 77"):
            self.assertIn(text, run.stdout)
        command = run.stdout.split("run it again:\n")[1].splitlines()[0]
        again = self.start("sh", "-c", command)
        self.assertNotEqual(again.returncode, 0)
        self.assertEqual(self.frozen().count("--seed 77"), 3)

    def test_selects_with_the_arguments_of_ctest_and_the_skip_list(self):
        for name in ("queue.a", "queue.b", "queue.real_time", "actor.a"):
            self.add(name, "exit 0")
        run = self.run_frozen("-R", "queue", "-E", "b$", skip="# a reason\nreal_time\n")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("passed 1, failed 0, skipped 1", run.stdout)
        self.assertEqual(self.runs("queue.a"), 1)

    def test_fails_if_nothing_runs(self):
        self.add("first", "exit 0")
        run = self.run_frozen(skip="first\n")
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("no tests were found", run.stdout)

    def test_takes_the_limit_of_the_preset(self):
        presets = self.root / "CMakePresets.json"
        presets.write_text(presets.read_text().replace('"timeout": 60', '"timeout": 1'))
        self.add("late", "exec sleep 30")
        run = self.run_frozen()
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("FAILED late (Timeout after 10 s)", run.stdout)

    def test_skips_a_fixture_of_the_skip_list(self):
        self.add("user", "exit 0", FIXTURES_REQUIRED="f")
        self.add("fixture", "exit 1", FIXTURES_SETUP="f")
        self.add("first", "exit 0")
        run = self.run_frozen(skip="fixture\nuser\n")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("passed 1, failed 0, skipped 2", run.stdout)

    def test_kills_a_test_after_ten_times_its_limit(self):
        self.add("late", "exec sleep 30", TIMEOUT="0.1")
        run = self.run_frozen()
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("FAILED late (Timeout after 1 s)", run.stdout)

    def test_refuses_a_property_that_it_does_not_know(self):
        self.add("inverted", "exit 0", WILL_FAIL="ON")
        run = self.run_frozen()
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("does not support WILL_FAIL", run.stdout)

    def test_fails_with_a_damaged_skip_list(self):
        self.add("first", "exit 0")
        run = self.run_frozen(skip="(\n")
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("skip.txt", run.stdout)


class TestCommand(ProjectTest):
    def run_test(self, *arguments, env=None):
        (self.root / "CMakeLists.txt").write_text("\n".join(self.cmake) + "\n")
        return self.start("./test", *arguments, env=env)

    def last_line(self, run):
        return run.stdout.splitlines()[-1]

    def test_adds_up_all_presets(self):
        self.add("first", "exit 0")
        self.add("skipped", "exit 77", SKIP_RETURN_CODE=77)
        run = self.run_test("--san")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertEqual(self.last_line(run), "3 passed, 0 failed, 3 skipped")
        self.assertEqual(run.stdout.count(" passed, "), 1)
        for stage in ("setup", "configure asan", "build tsan", "test release", "total"):
            self.assertRegex(run.stdout, rf"(?m)^{stage} +\d+ s$")

    def test_prints_the_counts_after_a_failure(self):
        self.add("first", "exit 0")
        self.add("second", "exit 1")
        run = self.run_test()
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertEqual(self.last_line(run), "1 passed, 1 failed, 0 skipped")

    def test_counts_flaky_tests_over_all_presets(self):
        for name in ("a", "b", "c"):
            self.add(name, "test $n -ne 1")
        self.add("d", "test $(basename $PWD) = release -o $n -ne 2")
        run = self.run_test("--flaky", "--san")
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("FLAKY d (asan)", run.stdout)
        self.assertIn("4 tests were flaky", run.stdout)
        self.assertNotIn("test tsan", run.stdout)
        self.assertEqual(self.last_line(run), "8 passed, 0 failed, 0 skipped")
        self.assertEqual(run.stdout.splitlines()[-2][:7], "4 flaky")

    def test_shows_the_first_output_of_flaky_tests_last(self):
        self.add("shaky", "echo this is run $n; test $n -ne 1")
        run = self.run_test("--flaky", "--san")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("this is run 1\n", run.stdout.split("test tsan")[-1])

    def test_runs_long_with_the_variable_the_time_limit_and_the_benchmarks(self):
        self.add("first", 'test "$SLUICE_LONG" = 1')
        self.program("scripts/bench-all", "echo benchmarks ran; exit 0")
        run = self.run_test("--long", "--preset", "release")
        self.assertEqual(run.returncode, 0, run.stdout)
        self.assertIn("benchmarks ran", run.stdout)
        self.assertEqual(self.run_test("--long").stdout.count("== build debug"), 1)
        self.program("scripts/bench-all", "exit 1")
        self.assertEqual(self.run_test("--long", "--preset", "release").returncode, 1)

    def test_gives_long_tests_more_time_than_the_preset(self):
        presets = self.root / "CMakePresets.json"
        presets.write_text(presets.read_text().replace('"timeout": 60', '"timeout": 1'))
        self.add("late", "exec sleep 2")
        self.program("scripts/bench-all", "exit 0")
        self.assertEqual(self.run_test("--preset", "release").returncode, 1)
        self.assertEqual(self.run_test("--long", "--preset", "release").returncode, 0)

    def test_refuses_a_freeze_without_a_seed(self):
        for arguments in (["--freeze"], ["--freeze", "x"], ["--san", "--freeze", "1"],
                          ["--flaky", "--freeze", "1"]):
            run = self.run_test(*arguments)
            self.assertEqual(run.returncode, 2, run.stdout)


if __name__ == "__main__":
    unittest.main()
