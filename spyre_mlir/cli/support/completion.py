"""`--print-completion`: a script for the shell that completes the flags of a tool, and values that are listed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from typing_extensions import override

_OFFERED = "offered"
SHELLS = ("bash", "zsh", "fish")
# How bash splits a command line: --flag=value is three words. A value behind a comma begins anew, as in -p cse,dce.
_BASH = """\
{name}() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} words= before=
  [[ $cur == "=" ]] && cur=
  [[ $prev == "=" ]] && prev=${{COMP_WORDS[COMP_CWORD-2]}}
  case $prev in
{cases}
  esac
  if [[ -n $words ]]; then
    before=${{cur%"${{cur##*,}}"}}
    COMPREPLY=($(compgen -P "$before" -W "$words" -- "${{cur##*,}}"))
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "{flags}" -- "$cur"))
  else
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}}
complete -o filenames -F {name} {tool}
"""
# A .zshrc may have no compinit, which defines compdef.
_ZSH = """\
(( $+functions[compdef] )) || {{ autoload -U compinit && compinit }}
{name}() {{
  _arguments \\
{flags}
    '*:file:_files'
}}
compdef {name} {tool}
"""


@dataclass(frozen=True)
class Flag:
    """One spelling of an option of a tool.

    Args:
        words: values to offer; none if they are free, or if it takes none.
        takes_value: whether a value follows.
        several: whether it takes values with commas between.
        help: a line for shells that show one.
    """

    words: tuple[str, ...] = ()
    takes_value: bool = False
    several: bool = False
    help: str = ""


class ShowCompletion(argparse.Action):
    """`--print-completion SHELL` of a tool.

    Args:
        more_flags: help of flags that the parser does not know by itself.
        more_values: values of flags that take several, with commas between, by flag.
    """

    def __init__(
        self,
        *args: Any,
        more_flags: Mapping[str, str] | None = None,
        more_values: Mapping[str, Sequence[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Same further arguments as `argparse.Action`."""
        kwargs.setdefault("help", "print a script that completes this tool's flags in a shell, and stop")
        super().__init__(*args, **kwargs | {"choices": SHELLS, "dest": argparse.SUPPRESS, "default": argparse.SUPPRESS})
        self._more_flags = {flag: Flag(help=line) for flag, line in (more_flags or {}).items()}
        self._more_values = dict(more_values or {})

    @override
    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        """Print the script and end the program."""
        actions = cast(list[argparse.Action], vars(parser)["_actions"])  # argparse has no other way to ask
        flags = {flag: _flag(action, parser.prog) for action in actions for flag in action.option_strings}
        flags |= {flag: more for flag, more in self._more_flags.items() if flag not in flags}
        for flag, words in self._more_values.items():
            flags[flag] = replace(flags[flag], words=tuple(words), several=True)
        sys.stdout.write(completion_script(values, parser.prog, flags))
        parser.exit()


def offer(action: argparse.Action, words: Sequence[str]) -> None:
    """Let a shell offer words for a flag that takes more than these, and so has no choices."""
    vars(action)[_OFFERED] = tuple(words)


def _flag(action: argparse.Action, tool: str) -> Flag:
    words = tuple(map(str, vars(action).get(_OFFERED) or action.choices or ()))
    text = action.help or ""
    if text == argparse.SUPPRESS:
        return Flag(words, action.nargs != 0)
    return Flag(words, action.nargs != 0, help=text % {**vars(action), "prog": tool})


def completion_script(shell: str, tool: str, flags: Mapping[str, Flag]) -> str:
    """Return the script that completes a tool.

    Args:
        shell: one of `SHELLS`.
        tool: its name on the command line.
        flags: the flags by their spelling.
    """
    if shell == "fish":
        return "".join(f"complete -c {tool} {_fish(spelling, flag)}\n" for spelling, flag in flags.items())
    name = f"_{tool.replace('-', '_')}"
    if shell == "zsh":
        lines = "\n".join(f"    {_zsh(spelling, flag)} \\" for spelling, flag in flags.items())
        return _ZSH.format(name=name, tool=tool, flags=lines)
    cases = "\n".join(f'    {flag}) words="{" ".join(f.words)}";;' for flag, f in flags.items() if f.words)
    return _BASH.format(name=name, tool=tool, cases=cases, flags=" ".join(flags))


def _zsh(spelling: str, flag: Flag) -> str:
    """Return an option of `_arguments`, which may come again."""
    taken = ""
    if flag.takes_value:
        taken = "=" if spelling.startswith("--") else "+"
    text = _clause(flag.help).translate({ord(sign): f"\\{sign}" for sign in "\\[]"})
    words = " ".join(flag.words)
    offered = f"_sequence compadd - {words}" if flag.several else f"({words})" if words else "_files"
    option = f"*{spelling}{taken}[{text}]" + (f":value:{offered}" if flag.takes_value else "")
    return "'" + option.replace("'", "'\\''") + "'"


def _fish(spelling: str, flag: Flag) -> str:
    """Return the options of `complete`."""
    kind = "-l" if spelling.startswith("--") else "-s"
    parts = [f"{kind} {spelling.lstrip('-')}"]
    if flag.words:
        words = " ".join(flag.words)
        parts.append(f"-xa '(__fish_append , {words})'" if flag.several else f"-xa '{words}'")
    elif flag.takes_value:
        parts.append("-r")
    if flag.help:
        escaped = _clause(flag.help).replace("\\", "\\\\").replace("'", "\\'")
        parts.append(f"-d '{escaped}'")
    return " ".join(parts)


def _clause(text: str) -> str:
    return text.strip().partition("\n")[0].partition("; ")[0]
