#!/bin/sh
# Runs the nightly for cron: from any folder, one at a time, with a log, and keeps its exit code.
#
#   AGENT_GYM_HOME    folder of all results (default: results/ of this checkout)
#   AGENT_GYM_PYTHON  interpreter (default: .venv/bin/python of this checkout, else python3)
#
# Words after the name of the script are handed on, for example --fail-on-unsure; paths in them are
# relative to the caller's folder.
# Exit codes: 0 ok, 1 regression, 2 usage, 3 no baseline to compare with, 4 errors, 5 another run
# holds the lock, 130 interrupted.
set -u

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P) || exit 4
AGENT_GYM_HOME=${AGENT_GYM_HOME:-$root/results}
case $AGENT_GYM_HOME in
    /*) ;;
    *) AGENT_GYM_HOME=$PWD/$AGENT_GYM_HOME ;;
esac
export AGENT_GYM_HOME

python=${AGENT_GYM_PYTHON:-$root/.venv/bin/python}
if [ -z "${AGENT_GYM_PYTHON:-}" ] && [ ! -x "$python" ]; then
    python=python3
fi

logs=$AGENT_GYM_HOME/logs
log=$logs/agent_gym_nightly.log
mkdir -p -- "$logs" || exit 4

say() {
    printf '%s %s\n' "$(date -u '+%Y-%m-%dT%H:%M:%SZ')" "$*" >>"$log"
}

# One at a time. The nightly has a lock of its own; this one also keeps two logs apart, and the
# system gives it back whatever becomes of this process.
if command -v flock >/dev/null 2>&1; then
    exec 9>"$logs/agent_gym_nightly.lock" || exit 4
    if ! flock -n 9; then
        say "not started: another nightly is running (exit 5)"
        exit 5
    fi
fi

# A log of more than 10 MB makes room for a new one; the one before is kept.
if [ -f "$log" ] && [ "$(wc -c <"$log")" -gt 10485760 ]; then
    mv -f -- "$log" "$log.1"
fi

# The folder stays the caller's, so that words such as --scenarios mine.json mean what they say.
say "started: nightly --fail-on-regression --print-summary $*"
"$python" "$root/scripts/run_agent_gym_nightly.py" --fail-on-regression --print-summary "$@" \
    >>"$log" 2>&1 9>&- &
child=$!
# A child in the background does not hear Ctrl-C, so it is asked to end in the other way.
interrupted=
trap 'kill -TERM "$child" 2>/dev/null' TERM HUP
trap 'interrupted=yes; kill -TERM "$child" 2>/dev/null' INT

# A signal ends the wait, not the child: wait until it is really gone.
wait "$child"
code=$?
while kill -0 "$child" 2>/dev/null; do
    wait "$child"
    code=$?
done

[ -z "$interrupted" ] || code=130

say "finished: exit $code"
exit "$code"
