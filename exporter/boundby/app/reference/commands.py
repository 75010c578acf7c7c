"""docs/cli.md: every command with its arguments, read off the parser that the program uses."""

import argparse
from collections.abc import Iterable

from boundby.app.reference.markdown import code, page, table

INTRO = "`boundby COMMAND --help` says the same in the terminal."


def render(parser: argparse.ArgumentParser) -> str:
    """Write the page for a parser whose subcommands are the commands."""
    commands = subcommands(parser)
    about = {
        choice.dest: choice.help or ""
        for action in _actions(parser)
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001  argparse has no public name for it
        for choice in action._choices_actions  # noqa: SLF001  nor for the help of each command
    }
    return page(
        "# Commands",
        INTRO,
        table(
            ("Command", "Does"),
            ((f"[{code(name)}](#boundby-{name})", about.get(name, "")) for name in commands),
        ),
        *(_command(name, about.get(name, ""), command) for name, command in commands.items()),
    )


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Every command's own parser, by name."""
    return {
        name: command
        for action in _actions(parser)
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001  as above
        for name, command in action.choices.items()
    }


def _actions(parser: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    return parser._actions  # noqa: SLF001  argparse lists them nowhere else


def options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """List a command's arguments, --help left out."""
    return [a for a in _actions(parser) if not isinstance(a, argparse._HelpAction)]  # noqa: SLF001  as above


def _command(name: str, about: str, parser: argparse.ArgumentParser) -> str:
    said = parser.description or about
    rows = [_row(action) for action in options(parser)]
    blocks = [f"## boundby {name}", " ".join(said.split())]
    if rows:
        blocks.append(table(("Argument", "Default", "Meaning"), rows))
    return "\n\n".join(block for block in blocks if block)


def _row(action: argparse.Action) -> tuple[str, str, str]:
    names = ", ".join(action.option_strings)
    value = action.metavar or (
        "|".join(str(choice) for choice in action.choices)
        if action.choices
        else action.dest.upper()
    )
    takes = "" if action.nargs == 0 else str(value)
    default = (
        "-" if action.default in (None, False, argparse.SUPPRESS) else code(str(action.default))
    )
    said = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return code(" ".join(part for part in (names, takes) if part)), default, said
