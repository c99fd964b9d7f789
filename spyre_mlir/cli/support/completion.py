"""`--print-completion`: a script for the shell that completes the flags of a tool, and values that are listed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
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


class ShowCompletion(argparse.Action):
    """`--print-completion SHELL` of a tool.

    Args:
        more_flags: flags that the parser does not know by itself.
        more_values: values of flags that have no choices, by flag.
    """

    def __init__(
        self,
        *args: Any,
        more_flags: Iterable[str] = (),
        more_values: Mapping[str, Sequence[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Same further arguments as `argparse.Action`."""
        kwargs.setdefault("help", "print a script that completes this tool's flags in a shell, and stop")
        super().__init__(*args, **kwargs | {"choices": SHELLS, "dest": argparse.SUPPRESS, "default": argparse.SUPPRESS})
        self._more_flags = tuple(more_flags)
        self._more_values = dict(more_values or {})

    @override
    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        """Print the script and end the program."""
        actions = cast(list[argparse.Action], vars(parser)["_actions"])  # argparse has no other way to ask
        named = {flag: _words(action) for action in actions for flag in action.option_strings}
        flags = {**named, **dict.fromkeys(self._more_flags, ()), **self._more_values}
        sys.stdout.write(completion_script(values, parser.prog, flags))
        parser.exit()


def offer(action: argparse.Action, words: Sequence[str]) -> None:
    """Let a shell offer words for a flag that takes more than these, and so has no choices."""
    vars(action)[_OFFERED] = tuple(words)


def _words(action: argparse.Action) -> Sequence[str]:
    return tuple(map(str, vars(action).get(_OFFERED) or action.choices or ()))


def completion_script(shell: str, tool: str, flags: Mapping[str, Sequence[str]]) -> str:
    """Return the script that completes a tool.

    Args:
        shell: one of `SHELLS`.
        tool: its name on the command line.
        flags: the values of each flag; none if they are free, or it takes none.
    """
    if shell == "fish":
        return "".join(f"complete -c {tool} {_fish(flag, words)}\n" for flag, words in flags.items())
    valued = {flag: words for flag, words in flags.items() if words}
    cases = "\n".join(f'    {flag}) words="{" ".join(words)}";;' for flag, words in valued.items())
    script = _BASH.format(name=f"_{tool.replace('-', '_')}", tool=tool, cases=cases, flags=" ".join(flags))
    return script if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{script}"


def _fish(flag: str, words: Sequence[str]) -> str:
    name = f"-l {flag.removeprefix('--')}" if flag.startswith("--") else f"-s {flag.removeprefix('-')}"
    return f'{name} -xa "{" ".join(words)}"' if words else name
