import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from boundby.sources.exposition import Page, Wanted, parse
from boundby.sources.labels import read_labels

INF = math.inf


def wanted() -> Wanted:
    return Wanted(values=["up", "app:jobs", "_hidden"], histograms=["wait_seconds"])


def only(page: Page, family: str) -> tuple[dict[str, str], float]:
    ((labels, value),) = page.rows(family)
    return dict(labels), value


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        pytest.param('up{a="b"} 1', {"a": "b"}, 1.0, id="labels and a value"),
        pytest.param("up 1", {}, 1.0, id="no labels"),
        pytest.param("up{} 1", {}, 1.0, id="empty braces"),
        pytest.param('up{a="b",} 1', {"a": "b"}, 1.0, id="a comma after the last label"),
        pytest.param('up { a = "b" , c="d" }  1 ', {"a": "b", "c": "d"}, 1.0, id="odd spaces"),
        pytest.param('  up{a="b"}\t1', {"a": "b"}, 1.0, id="indented, with a tab"),
        pytest.param('up{a="b"} 1\r', {"a": "b"}, 1.0, id="carriage return"),
        pytest.param('up{a="b"} 1.5e3', {"a": "b"}, 1500.0, id="exponent"),
        pytest.param('up{a="b"} -0', {"a": "b"}, 0.0, id="minus zero"),
        pytest.param('up{a="b"} 1 1796102803329', {"a": "b"}, 1.0, id="timestamp"),
        pytest.param('up{a="x\\\\y"} 1', {"a": "x\\y"}, 1.0, id="escaped backslash"),
        pytest.param('up{a="x\\"y"} 1', {"a": 'x"y'}, 1.0, id="escaped quote"),
        pytest.param('up{a="x\\ny"} 1', {"a": "x\ny"}, 1.0, id="escaped newline"),
        pytest.param(
            'up{a="x\\ty"} 1', {"a": "x\\ty"}, 1.0, id="a backslash that escapes nothing"
        ),
        pytest.param('up{a="} 2"} 1', {"a": "} 2"}, 1.0, id="brace and number inside a label"),
        pytest.param('up{a="é 世"} 1', {"a": "é 世"}, 1.0, id="letters beyond ASCII"),
        pytest.param('up{"a.b"="c"} 1', {"a.b": "c"}, 1.0, id="quoted label name"),
        pytest.param(
            'up{a="b"} 1 # {trace="} 9"} 0.5 1.2', {"a": "b"}, 1.0, id="exemplar with a time"
        ),
        pytest.param('up{a="b"} 1 # {trace="x"} 9', {"a": "b"}, 1.0, id="exemplar"),
    ],
)
def test_a_line_is_read_whatever_the_format_allows(
    line: str, labels: dict[str, str], value: float
) -> None:
    page = parse(f"{line}\n", wanted())

    assert (only(page, "up"), page.problems) == ((labels, value), ())


def test_a_page_read_again_gives_the_same_without_learning_anew() -> None:
    families, text = wanted(), 'up{a="b"} 1\nother{a="b"} 2\n# TYPE up gauge\nup{a="c"} 3\n'
    first = parse(text, families)

    again = parse(text, families)

    assert again == first


def test_a_value_changes_where_its_line_is_known() -> None:
    families = wanted()
    parse('up{a="b"} 1\n', families)

    page = parse('up{a="b"} 2\n', families)

    assert only(page, "up") == ({"a": "b"}, 2.0)


def test_a_series_that_is_gone_stays_gone_where_its_line_is_known() -> None:
    families = wanted()
    parse('up{a="b"} 1\nup{a="c"} 1\n', families)

    page = parse('up{a="c"} 2\n', families)

    assert only(page, "up") == ({"a": "c"}, 2.0)


def test_exemplars_do_not_change_what_a_known_line_says() -> None:
    families = wanted()
    parse('up{a="b"} 1 # {trace="x"} 9\n', families)

    page = parse('up{a="b"} 2 # {trace="x"} 8\n', families)

    assert only(page, "up") == ({"a": "b"}, 2.0)


@pytest.mark.parametrize("name", ["app:jobs", "app:jobs_total"])
def test_a_counter_is_found_under_both_its_spellings(name: str) -> None:
    page = parse(f"{name} 7\n", wanted())

    assert only(page, "app:jobs") == ({}, 7.0)


def test_names_may_begin_with_an_underscore() -> None:
    assert only(parse("_hidden 7\n", wanted()), "_hidden") == ({}, 7.0)


def test_created_rows_are_passed_over() -> None:
    page = parse('app:jobs_created{a="b"} 1.7e9\n', wanted())

    assert not page


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "nan", "inf", "1e308", "-1e31"])
def test_a_value_that_measures_nothing_is_left_out_and_counted(value: str) -> None:
    page = parse(f'up{{a="b"}} {value}\nup{{a="c"}} 1\n', wanted())

    assert (only(page, "up"), page.not_finite) == (({"a": "c"}, 1.0), 1)


def test_of_a_repeated_series_the_first_is_kept_whatever_the_order_of_labels() -> None:
    page = parse('up{a="b",c="d"} 1\nup{c="d",a="b"} 2\n', wanted())

    assert (only(page, "up")[1], page.repeated) == (1.0, 1)


def test_timestamps_are_kept_in_seconds() -> None:
    page = parse('up{a="b"} 1 1796102803329\n', wanted())

    assert page.stamps == {("up", 'a="b"'): 1796102803.329}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "up 1\nup 2", "line 2: cut off at 'up 2'; it is left out", id="no last newline"
        ),
        pytest.param("<html>\n", "line 1: no metric name in '<html>'", id="markup"),
        pytest.param("up\n", "line 1: a value was expected at ''", id="no value"),
        pytest.param("up 1 2 3\n", "line 1: a value was expected at ' 1 2 3'", id="too much"),
        pytest.param("up one\n", "line 1: 'one' is not a number", id="a word for a value"),
        pytest.param('up{a="b"} x\n', "line 1: 'x' is not a number", id="the same, with labels"),
        pytest.param('up{a="b" 1\n', "line 1: labels are not closed in '{a=\"b\" 1'", id="open"),
        pytest.param("up{a=b} 1\n", "line 1: labels cannot be read from 'a=b'", id="no quotes"),
        pytest.param('up{a="1",a="2"} 1\n', "line 1: label a is there twice", id="a label twice"),
        pytest.param(
            "3up 1\n", "line 1: no metric name in '3up 1'", id="name begins with a digit"
        ),
        pytest.param(
            'wait_seconds_bucket{a="b"} 1\n',
            "line 1: a bucket of wait_seconds without a bound",
            id="bucket without le",
        ),
    ],
)
def test_a_bad_line_is_told_with_its_number(text: str, problem: str) -> None:
    page = parse(text, wanted())

    assert problem in page.problems


def test_a_known_line_that_turns_bad_is_told() -> None:
    families = wanted()
    parse('up{a="b"} 1\n', families)

    page = parse('\nup{a="b"} ?\n', families)

    assert page.problems == ("line 2: '?' is not a number",)


def test_many_problems_are_counted_and_the_first_are_told() -> None:
    page = parse("<b>\n" * 100, wanted())

    assert (len(page.problems), page.problems[-1]) == (9, "and 92 more problems")


@pytest.mark.parametrize("end", ["# EOF", "# EOF\n", ""])
def test_a_page_that_ends_in_a_comment_or_a_newline_is_whole(end: str) -> None:
    assert parse(f"up 1\n{end}", wanted()).problems == ()


HISTOGRAM = (
    'wait_seconds_bucket{a="b",le="0.5"} 1\n'
    'wait_seconds_bucket{a="b",le="1"} 3\n'
    'wait_seconds_bucket{a="b",le="+Inf"} 4\n'
    'wait_seconds_sum{a="b"} 9.5\n'
    'wait_seconds_count{a="b"} 4\n'
)


def test_a_histogram_is_put_together() -> None:
    ((labels, histogram),) = parse(HISTOGRAM, wanted()).histogram_rows("wait_seconds")

    assert (dict(labels), histogram.bounds, histogram.counts, histogram.sum, histogram.count) == (
        {"a": "b"},
        (0.5, 1.0, INF),
        (1.0, 3.0, 4.0),
        9.5,
        4.0,
    )


@pytest.mark.parametrize("spelling", ["1", "1.0", "1e+00", "1.000"])
def test_a_bound_is_the_same_however_it_is_spelled(spelling: str) -> None:
    families = wanted()
    usual = parse(HISTOGRAM, families).histograms

    page = parse(HISTOGRAM.replace('le="1"', f'le="{spelling}"'), families)

    assert page.histograms == usual


def test_the_order_of_a_histograms_lines_does_not_matter() -> None:
    lines = HISTOGRAM.splitlines(keepends=True)

    page = parse("".join(reversed(lines)), wanted())

    assert page.histograms == parse(HISTOGRAM, wanted()).histograms


def test_a_histogram_without_its_last_bucket_takes_the_count() -> None:
    text = "".join(line for line in HISTOGRAM.splitlines(keepends=True) if "+Inf" not in line)

    assert parse(text, wanted()).histograms == parse(HISTOGRAM, wanted()).histograms


def test_a_histogram_without_a_count_takes_its_last_bucket() -> None:
    text = "".join(line for line in HISTOGRAM.splitlines(keepends=True) if "_count" not in line)

    assert parse(text, wanted()).histograms == parse(HISTOGRAM, wanted()).histograms


@pytest.mark.parametrize("lost", ["_sum", "_count"])
def test_a_histogram_that_lacks_a_part_is_left_out_and_told(lost: str) -> None:
    text = "".join(
        line
        for line in HISTOGRAM.splitlines(keepends=True)
        if lost not in line and "+Inf" not in line
    )

    page = parse(text, wanted())

    assert (page.histograms, page.problems) == (
        {},
        (f'wait_seconds{{a="b"}} has buckets but no {lost[1:]}',),
    )


def test_a_bucket_below_the_one_before_is_raised_and_told() -> None:
    page = parse(HISTOGRAM.replace('le="1"} 3', 'le="1"} 0'), wanted())

    ((_, histogram),) = page.histogram_rows("wait_seconds")
    assert (histogram.counts, len(page.problems)) == ((1.0, 1.0, 4.0), 1)


def test_two_series_of_one_histogram_are_kept_apart() -> None:
    page = parse(HISTOGRAM + HISTOGRAM.replace('a="b"', 'a="c"'), wanted())

    assert [dict(labels) for labels, _ in page.histogram_rows("wait_seconds")] == [
        {"a": "b"},
        {"a": "c"},
    ]


def test_labels_that_come_and_go_are_forgotten() -> None:
    families = wanted()
    for number in range(40):
        parse("".join(f'up{{a="{number}.{row}"}} 1\n' for row in range(100)), families)

    assert len(families.layout(100).places) < 3000


def test_a_line_without_a_space_hides_no_other() -> None:
    page = parse('other{a="b"}1\n<html>\nup{a="b"}1\n', wanted())

    assert only(page, "up") == ({"a": "b"}, 1.0)
    assert page.problems == ("line 2: no metric name in '<html>'",)


def test_a_huge_page_is_not_remembered_whole() -> None:
    families = wanted()
    text = "".join(f'other{{a="{row}"}} 1\n' for row in range(100_000))

    parse(text + 'up{a="b"} 1\n', families)

    assert len(families.layout(100_000).places) <= 65536
    assert only(parse('up{a="b"} 2\n', families), "up") == ({"a": "b"}, 2.0)


STORED = sorted(
    path.relative_to(Path(__file__).parent.parent / "fixtures").as_posix().removesuffix(".prom.gz")
    for path in (Path(__file__).parent.parent / "fixtures").rglob("*.prom.gz")
)


@pytest.mark.parametrize("name", STORED)
def test_each_stored_page_reads_as_the_client_library_reads_it(
    name: str, stored: Callable[[str], str]
) -> None:
    text = stored(name)
    theirs: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name.removesuffix("_total"), frozenset(sample.labels.items()))
            theirs.setdefault(key, float(sample.value))

    page = parse(text, Wanted(values=sorted({name for name, _ in theirs})))

    ours = {
        (family, frozenset(labels.items())): value
        for family in page.values
        for labels, value in page.rows(family)
    }
    assert ours == {key: value for key, value in theirs.items() if math.isfinite(value)}


texts = st.one_of(
    st.text(),
    st.lists(
        st.one_of(
            st.text(alphabet='up{}="\\,.# 1e+-NaInf_\n\t', max_size=40),
            st.sampled_from([*HISTOGRAM.splitlines(), "up 1", "# EOF", "up{} NaN"]),
        )
    ).map("\n".join),
)


@given(texts)
def test_any_text_gives_a_page_of_finite_values(text: str) -> None:
    page = parse(text, wanted())

    values = [value for rows in page.values.values() for value in rows.values()]
    for rows in page.histograms.values():
        for histogram in rows.values():
            values += [*histogram.counts, histogram.sum, histogram.count]
            assert list(histogram.bounds) == sorted(set(histogram.bounds))
            assert list(histogram.counts) == sorted(histogram.counts)
    assert all(map(math.isfinite, values))


@given(texts)
def test_a_page_reads_the_same_the_second_time(text: str) -> None:
    families = wanted()

    assert parse(text, families).values == parse(text, families).values


@given(st.dictionaries(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]*", fullmatch=True), st.text()))
def test_labels_survive_being_spelled_and_read(labels: dict[str, str]) -> None:
    def escape(text: str) -> str:
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

    text = ",".join(f'{name}="{escape(value)}"' for name, value in labels.items())

    read = read_labels(text)

    assert (dict(read.labels), dict(read_labels(read.key).labels)) == (labels, labels)
