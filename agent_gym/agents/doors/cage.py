"""The cage: sets the limits of an untrusted program from inside its process, then becomes it.

It is run as a script by a bare interpreter (``python -I -S cage.py SPEC``), so it imports nothing
but the standard library. Three processes: the keeper, which ends all when the gym lets go of its
pipe; the first of a process namespace, with whose end the kernel ends all others in there; and the
program. What could really be set up is told as one line of JSON, before the program starts.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import struct
import sys
from contextlib import suppress
from typing import Any

NEW = {"pids": 0x20000000, "network": 0x40000000, "ipc": 0x08000000}
NEW_USER = 0x10000000
PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_CAPBSET_DROP, PR_SET_SUBREAPER = 1, 8, 24, 36
PR_NO_NEW_PRIVS, PR_CAP_AMBIENT, AMBIENT_RAISE = 38, 47, 2
READ_ALL = 2  # CAP_DAC_READ_SEARCH: a foreign user must still find its interpreter
NEW_MOUNTS, PRIVATE, PLAIN_FILES = 0x00020000, 1 << 18 | 1 << 14, 0b110  # no devices, no setuid
INODES_PER_MB = 64
RULESET, ADD_RULE, RESTRICT = 444, 445, 446  # system calls, the same on every kind of machine
CAP_VERSION, LAST_CAP = 0x20080522, 63
FIRST_FOREIGN = 0x70000000  # ids that nobody has, so that processes are counted apart
FILE_RIGHTS, WITH_DEVICES = (1 << 15) - 1, (1 << 16) - 1  # of Landlock 3, and of 5
READING, WRITING_FILE = 0b1101, 0b10 | 1 << 14 | 1 << 15
ON_FILES = 0b111 | 1 << 14 | 1 << 15  # rights that make sense on what is no folder
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *args: Any) -> None:
    if not hasattr(_libc, name):
        raise OSError(f"the C library of this machine has no {name}")
    if getattr(_libc, name)(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def unshare(told: dict[str, str]) -> None:
    """Leave the namespaces of this machine, each that lets us go."""
    uid, gid = os.getuid(), os.getgid()
    try:
        if uid != 0:
            _call("unshare", NEW_USER)
            for name, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{uid} {uid} 1"),
                ("gid_map", f"{gid} {gid} 1"),
            ):
                with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - a kernel's file
                    file.write(text)
            told["user"] = "ok"
    except OSError as error:
        told["user"] = str(error)
    for name, flag in NEW.items():
        try:
            _call("unshare", flag)
            told[name] = "ok"
        except OSError as error:
            told[name] = str(error)


def own_disk(folder: str, most_mb: int) -> str:
    """Put a small disk of its own in the place of the folder; return "ok", or why not.

    It is in memory and ends with the last process that sees it.
    """
    size = f"size={most_mb}m,nr_inodes={most_mb * INODES_PER_MB},mode=0700"
    try:
        _call("unshare", NEW_MOUNTS)
        _call("mount", b"none", b"/", None, PRIVATE, None)
        _call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", PLAIN_FILES, size.encode())
    except OSError as error:
        return str(error)
    return "ok"


def set_limits(limits: dict[str, int], *, counted_apart: bool) -> None:
    """Set every limit, soft and hard."""
    for name, value in limits.items():
        if name == "NPROC" and not counted_apart:
            value += _running()
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(kind, (value, value))


def _running() -> int:
    """Return how many threads this user has now."""
    count, own = 0, os.getuid()
    for name in os.listdir("/proc"):  # noqa: PTH208
        with suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == own:  # noqa: PTH116
                count += len(os.listdir(f"/proc/{name}/task"))  # noqa: PTH208
    return count


def become_foreign(folder: str, who: int) -> None:
    """Give up root: another user, who owns the folder and may read what root may."""
    os.chown(folder, who, who)
    for cap in range(LAST_CAP + 1):
        if cap != READ_ALL:
            _libc.prctl(PR_CAPBSET_DROP, cap, 0, 0, 0)  # fails beyond the last one there is
    _call("prctl", PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(who, who, who)
    os.setresuid(who, who, who)
    low = 1 << READ_ALL
    header = struct.pack("Ii", CAP_VERSION, 0)
    _call("capset", header, struct.pack("6I", low, low, low, 0, 0, 0))
    _call("prctl", PR_CAP_AMBIENT, AMBIENT_RAISE, READ_ALL, 0, 0)


def close_files(readable: list[str], writable: list[str]) -> None:
    """Let the program read and write below these paths alone, and signal nobody outside."""
    abi = _libc.syscall(RULESET, None, 0, 1)
    if abi < 3:
        raise OSError(f"Landlock of version {abi}, 3 is needed")
    handled = WITH_DEVICES if abi >= 5 else FILE_RIGHTS
    attributes = struct.pack("QQQ", handled, 0, 0b11 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 8
    rules = _libc.syscall(RULESET, attributes[:size], size, 0)
    if rules < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for path in readable:
        _allow(rules, path, READING & handled)
    for path in writable:
        whole = os.path.isdir(path)  # noqa: PTH112
        _allow(rules, path, handled if whole else (READING | WRITING_FILE) & handled)
    _call("syscall", RESTRICT, rules, 0)
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    with suppress(FileNotFoundError):
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if not os.path.isdir(path):  # noqa: PTH112
            rights &= ON_FILES
        _call("syscall", ADD_RULE, rules, 1, struct.pack("=Qi", rights, handle), 0)
        os.close(handle)


def become(spec: dict[str, Any], told: dict[str, str]) -> None:
    """Set the last limits and turn into the program; returns only by an error."""
    os.chdir(spec["folder"])
    foreign = os.getuid() == 0
    if foreign:
        become_foreign(spec["folder"], FIRST_FOREIGN + spec["number"])
        told["user"] = "ok"
    set_limits(spec["limits"], counted_apart=told.get("user") == "ok")
    _call("prctl", PR_NO_NEW_PRIVS, 1, 0, 0, 0)
    try:
        close_files(spec["readable"], [spec["folder"], "/dev/null"])
        told["files"] = "ok"
    except OSError as error:
        told["files"] = str(error)
    told["limits"] = "ok"
    lacking = [part for part in spec["needs"] if told.get(part) != "ok"]
    os.write(spec["status"], json.dumps({"parts": told, "lacking": lacking}).encode() + b"\n")
    if lacking:
        os._exit(125)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execve(spec["argv"][0], spec["argv"], spec["env"])


def program(spec: dict[str, Any], told: dict[str, str]) -> None:
    """Run the program in this process; whatever prevents that is told."""
    try:
        os.close(spec["life"])
        os.set_inheritable(spec["status"], False)
        become(spec, told)
    except OSError as error:
        os.write(spec["status"], json.dumps({"failed": str(error)}).encode() + b"\n")
    os._exit(126)


def first(spec: dict[str, Any], told: dict[str, str]) -> None:
    """Be the first process of the namespace: start the program, bury the dead, end with it."""
    _call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    child = os.fork()
    if child == 0:
        program(spec, told)
    _let_go(spec, "status", "life")
    while True:
        gone, status = os.wait()
        if gone == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _let_go(spec: dict[str, Any], *names: str) -> None:
    """Close what only others need: the pipes must end when the program does."""
    for handle in (0, 1, 2, *(spec[name] for name in names)):
        with suppress(OSError):
            os.close(handle)


def keep(spec: dict[str, Any]) -> None:
    """Start everything, and end everything when the gym is gone or the program is."""
    told: dict[str, str] = {}
    _call("prctl", PR_SET_SUBREAPER, 1, 0, 0, 0)
    if spec["namespaces"]:
        unshare(told)
        told["disk"] = own_disk(spec["folder"], spec["disk_mb"])
    child = os.fork()
    if child == 0:
        (first if told.get("pids") == "ok" else program)(spec, told)
    _let_go(spec, "status")
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([ended, spec["life"]], [], [])
    if ended not in ready:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    end_orphans()
    os._exit(code if code >= 0 else 128 - code)


def end_orphans() -> None:
    """Kill what the program began and left: without a process namespace nobody else would.

    Orphans come to the keeper, whose children they are then, until there is none.
    """
    with suppress(ChildProcessError):
        while True:
            for name in os.listdir("/proc"):  # noqa: PTH208
                if name.isdigit() and _parent(name) == os.getpid():
                    with suppress(ProcessLookupError):
                        os.kill(int(name), signal.SIGKILL)
            os.waitpid(-1, 0)


def _parent(pid: str) -> int | None:
    with suppress(OSError, ValueError), open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
        return int(file.read().rpartition(b")")[2].split()[1])
    return None


if __name__ == "__main__":
    keep(json.loads(sys.argv[1]))
