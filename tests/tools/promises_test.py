#!/usr/bin/env python3
"""Every promise that is built has a test, and the tool that says so can be believed."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import script  # noqa: E402

PAGE = """
| ids | about | built |
|---|---|---|
| `DB` | database | yes |
| `ADD` | add | no |
| `ADD-2` | add | yes |

- **DB-1** Is kept.
- **ADD-1** Is planned.
- **ADD-2** Is built before its group.
"""


def verdict(test_source, page=PAGE, name="x_test.c"):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        (root / "tests" / "unit").mkdir(parents=True)
        (root / "docs" / "SEMANTICS.md").write_text(page)
        (root / "tests" / "unit" / name).write_text(test_source)
        result = subprocess.run([script.SOURCE / "tools" / "promises", root], capture_output=True, text=True,
                                check=False)
        return result.returncode, result.stdout


def test_every_built_promise_has_a_test():
    result = subprocess.run([script.SOURCE / "tools" / "promises"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_a_built_promise_without_a_test_is_listed():
    status, text = verdict("/* DB-1 */\n\nQR_TEST(a) /* ADD-2 */\n{\n    /* DB-1 */\n")
    assert status == 1 and "no test names DB-1: Is kept." in text, text
    assert "ADD" not in text, text


def test_a_comment_on_the_line_or_right_above_counts():
    for cited in ("QR_TEST(a) /* DB-1, ADD-2 */\n", "/* DB-1: and\n * ADD-2 */\nQR_TEST(a)\n",
                  "/* ADD-2 */\nQR_TEST_WITH_TIMEOUT(a, 5) /* DB-1 */\n"):
        status, text = verdict(cited)
        assert status == 0, text
    status, text = verdict("# DB-1\ndef test_a():  # ADD-2\n", name="x_test.py")
    assert status == 0, text


def test_an_id_that_no_promise_has_is_listed():
    status, text = verdict("QR_TEST(a) /* DB-1 ADD-2 DB-9 */\n")
    assert status == 1 and "tests/unit/x_test.c:1: a names DB-9" in text, text


def test_a_promise_that_is_there_twice_is_refused():
    status, _ = verdict("QR_TEST(a) /* DB-1 ADD-2 */\n", page=PAGE + "- **DB-1** Again.\n")
    assert status == 1


if __name__ == "__main__":
    script.main(globals())
