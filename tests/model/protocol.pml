/* The heart of the protocol that docs/protocol.md tells: two workers, two jobs, a lock service, a
 * store, a queue. Above each atomic block stand the function and, in quotes, the statements that it
 * is about; model.py looks whether they are still there. -DNO_X leaves guard X out.
 *
 * KEYS=1: both jobs have one idempotency key, and its record decides. KEYS=2: they share only their
 * lock, and its row decides. Worker 1 works the kind under `hold`, worker 2 under `rerun`. Each has
 * a slot for each job. A slot that stands still is a paused process, one that forgets its run is a
 * process that died, and a request that is sent again is one whose reply was lost. */
#ifndef KEYS
#define KEYS 1
#endif
#ifndef LOCKED
#define LOCKED true
#endif
#include "guards.pml"

mtype = { ready, running, waiting, done };                               /* a job */
mtype = { absent, processing, retryable, held, succeeded };              /* a record */
mtype = { lost, refused, started };                                      /* an answer of begin */
typedef Job    { mtype state = ready; byte worker, delivery; bool live, begun };
typedef Record { mtype state = absent; byte worker, job, delivery, epoch; bool live, marked, hold };
typedef Lock   { byte worker, job, fence; bool live };                   /* worker 0: free */
Job jobs[2]; Record records[KEYS]; Lock lock;
byte claims = 3, losses = 1, forgets = 2;          /* that may still come: bounds the model */
byte service;                                      /* the slot that has the service's lock */

/* What an onlooker knows; the protocol never reads it. */
byte begins[KEYS], grants;                         /* so far */
byte effects[KEYS];                                /* in the store's transaction */
byte unanswered[KEYS];                             /* begun handlers without an answer, as bits */
byte strict[KEYS];                                 /* those that began under `hold` */
bool leased[4], inside[4];                         /* by slot: its lock is kept; its handler runs */

#define J jobs[job]
#define R records[job % KEYS]
#define K (job % KEYS)
#define ME (2 * (worker - 1) + job)
#define BOTH_KEPT(s) (s != ME && inside[s] && leased[s] && leased[ME])
#define CLAIM_IS_MINE (J.state == running && J.worker == worker && J.delivery == delivery)
#define RUN_IS_MINE (R.worker == worker && R.delivery == delivery && SAME_EPOCH)

inline take_effect() { effects[K]++; assert(effects[K] <= 1) }    /* G2: at most once */
inline wake(j) { if :: jobs[j].state == waiting -> jobs[j].state = ready :: else fi }
inline free_lock() { lock.worker = 0; lock.live = false; wake(0); wake(1) }

/* ops_begin.cpp BeginRun::answer; one transaction, so one step here */
inline begin() { atomic { if
  :: !CLAIM_IS_MINE -> answer = refused            /* "row_.deliveries != run().delivery" */
  :: CLAIM_IS_MINE && R.state == processing && R.worker == worker && R.job == job &&
     R.delivery == delivery -> answer = started    /* "if (is_own_run())": the same answer again */
  :: else -> if
    :: SUCCEEDED -> J.state = done; answer = refused    /* "case RecordState::kSucceeded:" */
    :: !SUCCEEDED && (R.state == held || LIVE_RUN) ->   /* "return wait_for_key();" */
       J.state = waiting; answer = refused
    :: else ->
      if :: R.state == processing ->               /* "mark_lost_run(tables_, *record_, proven);" */
            MARK_LOST_RUN;
            if :: lock.worker == R.worker && lock.job == R.job -> free_lock() :: else fi
         :: else fi;
      if
      :: R.marked && POLICY_HOLDS ->               /* "switch (std::max(record_->on_unknown, " */
         R.state = held; J.state = waiting; answer = refused
      :: !(R.marked && POLICY_HOLDS) && LIVE_LOCK ->    /* "if (lock_is_live(tables_, *lock_))" */
         J.state = waiting; answer = refused
      :: else ->                                   /* "++lock_->fence;" "++record_->epoch;" */
         if :: LOCKED -> lock.worker = worker; lock.job = job; lock.live = true;
               lock.fence = NEXT_FENCE; fence = lock.fence; grants++; grant = grants
            :: else fi;
         R.state = processing; R.worker = worker; R.job = job; R.delivery = delivery; R.live = true;
         R.epoch = NEXT_EPOCH; R.hold = (R.marked && R.hold) || worker == 1;
         J.begun = true; J.live = true; epoch = R.epoch;
         begins[K]++; mine = begins[K]; leased[ME] = true;
         answer = started
      fi
    fi
  fi }
}

/* ops_settle.cpp SettleRun::apply_outcome, for a success with `ctx.commit` */
inline commit() { atomic { inside[ME] = false; if
  :: RUN_IS_MINE && STILL_OPEN && SAME_FENCE ->    /* "fence_holds() ? succeed() : fenced();" */
     EFFECTS_WITHIN;                               /* "tables_.run_effects(request_.effects);" */
     assert(mine == begins[K]);                    /* no commit below the largest epoch begun */
     assert(grant == grants);                      /* nor below the largest fence */
     R.state = succeeded; R.marked = false; unanswered[K] = 0; strict[K] = 0;
     if :: J.state != running || CLAIM_IS_MINE -> J.state = done :: else fi;
     free_lock()
  :: RUN_IS_MINE && R.state == processing && CLAIM_IS_MINE && !SAME_FENCE ->
     R.marked = true; release()                    /* "outcome_.reason = "lock_fenced";" */
  :: else                                          /* "return superseded();", or settled before */
  fi }
}
/* ops_settle.cpp SettleRun::fail: "if (unknown) mark();" "return retry_later(delay);" */
inline release() {
  inside[ME] = false;
  if :: R.marked && R.hold -> R.state = held; J.state = waiting
     :: else -> R.state = retryable; J.state = ready fi;
  if :: lock.worker == worker && lock.job == job -> free_lock() :: else -> wake(0); wake(1) fi
}

/* The run is over for its worker; redis/lock_scripts.cpp gives the lock back by its token. */
inline forget() {
  inside[ME] = false; leased[ME] = false; answer = lost;
  delivery = 0; epoch = 0; fence = 0; mine = 0; grant = 0;
  if :: service == ME + 1 -> service = 0 :: else fi
}

proctype Slot(byte worker; byte job) {
  byte delivery, epoch, fence, mine, grant; mtype answer = lost;
end:
  atomic {                                         /* ops_claim.cpp claim: "++row.deliveries;" */
    J.state == ready && claims > 0 && (!LOCKED || service == 0 || forgets > 0); claims--;
    J.state = running; J.worker = worker; J.live = true; J.begun = false;
    J.delivery++; delivery = J.delivery;
    if :: LOCKED -> if :: service != 0 -> forgets-- :: else fi;    /* it expired or was lost */
          service = ME + 1                         /* take_up: "send_lock(run);" */
       :: else fi
  }
  do
  :: atomic { answer == lost -> begin();           /* begin_failed: "if (run.maybe_begun) {" */
       if :: losses > 0 -> losses--; answer = lost :: answer != refused :: answer == refused ->
          forget(); goto end fi }
  :: atomic { MAY_START ->                         /* start_handler: "act(std::move(start));" */
       assert(mine > 0);                           /* G14: no handler without a begin */
       assert(!(unanswered[K] & (worker == 1 -> 255 : strict[K])));    /* G6: none under hold */
       assert(!(BOTH_KEPT(0) || BOTH_KEPT(1) || BOTH_KEPT(2) || BOTH_KEPT(3)));    /* G4 */
       inside[ME] = true; unanswered[K] = unanswered[K] | (1 << mine);
       strict[K] = strict[K] | (worker == 1 -> 1 << mine : 0); break }
  :: atomic { !CLAIM_IS_MINE || !J.live -> forget(); goto end }
  od;
  if                                               /* how the handler ends */
  :: EFFECTS_BEFORE; atomic { commit(); if :: losses > 0 -> losses-- :: forget(); goto end fi };
     atomic { commit(); forget(); goto end }       /* asked again, after whatever happened since */
  :: atomic { if                                   /* exit 75: nothing was applied */
       :: MAY_FAIL -> unanswered[K] = unanswered[K] & ~(1 << mine); release()
       :: !(MAY_FAIL) fi; forget(); goto end }
  :: atomic { if                                   /* else: "record_->marked = true;" */
       :: MAY_FAIL -> R.marked = true; release()
       :: !(MAY_FAIL) fi; forget(); goto end }
  :: atomic { true -> forget(); goto end }         /* it dies */
  fi
}

/* Leases end at any moment; a queue hands a job on; the lock service forgets; a person answers. */
proctype World(byte job) {
  byte worker;
end: do
  :: atomic { J.state == running && J.live -> J.live = false;
       worker = J.worker; leased[ME] = false;
       if :: R.job == job && R.worker == worker && R.delivery == J.delivery -> R.live = false
          :: else fi;
       if :: lock.job == job && lock.worker == worker -> lock.live = false :: else fi;
       worker = 0 }
  /* ops_recover.cpp LostClaim::close_run: "mark_lost_run(tables_, *record_, proven_);" */
  :: atomic { J.state == running && !J.live -> J.state = ready;
       worker = J.worker;
       if :: J.begun && R.state == processing && R.job == job && R.worker == worker ->
             MARK_LOST_RUN; R.live = false
          :: else fi;
       if :: lock.job == job && lock.worker == worker && !lock.live -> free_lock() :: else fi;
       worker = 0 }
  /* ops_admin.cpp resolve_held: "record->owner.clear();" and run_on */
  :: atomic { R.state == held -> R.state = retryable; R.worker = 0;
       R.marked = false; unanswered[K] = 0; strict[K] = 0; wake(0); wake(1) }
  od
}

init { atomic { run Slot(1, 0); run Slot(1, 1); run Slot(2, 0); run Slot(2, 1);
                run World(0); run World(1) } }
