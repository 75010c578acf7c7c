import errno
from pathlib import Path

import pytest

from boundby.sources import pressure
from boundby.sources.tree import Tree
from process_tree import write


def test_some_is_read_as_a_ratio() -> None:
    text = "some avg10=78.24 avg60=36.98 avg300=27.35 total=1024971586\nfull avg10=1.00\n"

    assert pressure.some_ratio(text) == pytest.approx(0.7824)


def test_a_text_without_some_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="some"):
        pressure.some_ratio("full avg10=1.00\n")


@pytest.mark.parametrize(
    ("kernel", "number", "sentence"),
    [
        pytest.param(
            "4.18.0-553.el8", errno.ENOENT,
            "Linux 4.18.0-553.el8 has no pressure stall information; 4.20 and later have",
            id="a kernel too old is named with the version that has it",
        ),
        pytest.param(
            "6.1.0", errno.ENOENT,
            "this kernel (6.1.0) was built without CONFIG_PSI=y, or /proc/pressure is masked in "
            "this container",
            id="a kernel new enough lacks the option",
        ),
        pytest.param(
            "5.14.0", errno.EOPNOTSUPP,
            "pressure stall information is switched off in this kernel; boot it with psi=1",
            id="one that is switched off needs a boot flag",
        ),
        pytest.param(
            "6.1.0", errno.EACCES,
            "/proc/pressure may not be read here; let this user read it",
            id="a refusal is said to be one",
        ),
        pytest.param(
            "6.1.0", errno.EIO,
            "/proc/pressure cannot be read ([Errno 5] Input/output error)",
            id="anything else in its own words",
        ),
    ],
)  # fmt: skip
def test_each_way_of_lacking_it_has_its_sentence(
    kernel: str, number: int, sentence: str, tmp_path: Path
) -> None:
    write(tmp_path / "proc/sys/kernel/osrelease", f"{kernel}\n")
    error = OSError(number, "Input/output error")

    assert pressure.why_missing(Tree(tmp_path), error) == sentence
