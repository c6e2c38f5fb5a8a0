#!/bin/sh
# The handler of the kind `script`: charges outside, once, by a step that can be asked about.
set -eu
outside="$TORTURE_PROGRAMS/torture_worker outside"

if [ $# -gt 0 ]; then # charge or probe, for `sekali step`
    exec $outside "$1" "$SEKALI_STEP_KEY" "$SEKALI_KIND" "$SEKALI_KEY" "$SEKALI_EPOCH"
fi
$outside begin "$SEKALI_KIND" "$SEKALI_KEY" "$SEKALI_JOB_ID" "$SEKALI_EPOCH" "$SEKALI_LOCK_KEY" 0 0
exec "$TORTURE_PROGRAMS/sekali" step charge --probe "$0 probe" -- "$0" charge
