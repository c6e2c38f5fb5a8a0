#!/bin/sh
# The handler of every kind in the sweep with commands: exec_handler.sh SEKALI
set -eu
sekali=$1
ledger=$CRASH_FOLDER/ledger

case ${2:-} in
    charge)
        printf 'call\t%s\t%s\n' "$SEKALI_STEP_KEY" "$SEKALI_JOB_ID" >>"$ledger"
        printf 'charge\t%s\t%s\n' "$SEKALI_STEP_KEY" "$SEKALI_JOB_ID" >>"$ledger"
        echo "receipt-$SEKALI_STEP_KEY"
        exit 0
        ;;
    probe)
        grep -q "^charge.$SEKALI_STEP_KEY." "$ledger" 2>/dev/null || exit 4
        echo "receipt-$SEKALI_STEP_KEY"
        exit 0
        ;;
esac

case $SEKALI_KIND in
    pay)
        # A fault that is meant for a step strikes the first one that takes the file.
        fault=
        if mv "$CRASH_FOLDER/step-fault" "$CRASH_FOLDER/fault-$$" 2>/dev/null; then
            fault=$(cat "$CRASH_FOLDER/fault-$$")
        fi
        SEKALI_FAULT_AT=$fault "$sekali" step charge \
            --probe "$0 $sekali probe" -- "$0" "$sekali" charge
        ;;
    flaky) if [ "$SEKALI_ATTEMPT" = 1 ]; then exit 75; fi ;;
    snooze) if [ "$SEKALI_EPOCH" = 1 ]; then echo 'snooze 20ms' >&3; fi ;;
    unwanted) echo 'cancel unwanted' >&3 ;;
    poison) exit 65 ;;
    slow) sleep 0.9 ;; # long enough for its leases to be renewed
esac
