/* The guards of the protocol, each with what stands there when it is left out. */
#ifndef NO_EPOCH          /* a write names the epoch that its run began with */
#define SAME_EPOCH (R.epoch == epoch)
#else
#define SAME_EPOCH true
#endif
#ifndef NO_NEW_EPOCH      /* each begin raises the epoch */
#define NEXT_EPOCH R.epoch + 1
#else
#define NEXT_EPOCH 1
#endif
#ifndef NO_FENCE          /* a commit names the fence that its run began with */
#define SAME_FENCE (!LOCKED || (lock.fence == fence && (lock.worker == worker || lock.worker == 0)))
#else
#define SAME_FENCE true
#endif
#ifndef NO_NEW_FENCE      /* each grant raises the fence */
#define NEXT_FENCE lock.fence + 1
#else
#define NEXT_FENCE 1
#endif
#ifndef NO_FINAL          /* only what has no end yet is committed */
#define STILL_OPEN (R.state == processing || R.state == held)
#else
#define STILL_OPEN true
#endif
#ifndef NO_ATOMIC         /* effects and success are one transaction */
#define EFFECTS_BEFORE skip
#define EFFECTS_WITHIN take_effect()
#else
#define EFFECTS_BEFORE take_effect()
#define EFFECTS_WITHIN skip
#endif
#ifndef NO_DUPLICATE      /* a success is not begun again */
#define SUCCEEDED (R.state == succeeded)
#else
#define SUCCEEDED false
#endif
#ifndef NO_WAIT           /* what runs under a live lease is waited for */
#define LIVE_RUN (R.state == processing && R.live)
#else
#define LIVE_RUN false
#endif
#ifndef NO_LOCK_ROW       /* begin takes the store's lock row, whatever the lock service says */
#define LIVE_LOCK (lock.worker != 0 && lock.live)
#else
#define LIVE_LOCK false
#endif
#ifndef NO_MARK           /* a run that was lost is marked */
#define MARK_LOST_RUN R.marked = true
#else
#define MARK_LOST_RUN skip
#endif
#ifdef NO_HOLD            /* the unknown policy judges the mark */
#define POLICY_HOLDS false
#else
#ifdef NO_RECORDED        /* the policy of the run that was lost counts, too */
#define POLICY_HOLDS (worker == 1)
#else
#define POLICY_HOLDS (R.hold || worker == 1)
#endif
#endif
#ifndef NO_OWN_END        /* a run writes its own failure only */
#define MAY_FAIL (RUN_IS_MINE && R.state == processing && CLAIM_IS_MINE)
#else
#define MAY_FAIL true
#endif
#ifndef NO_ANSWER         /* a handler waits for the answer to its begin */
#define ANSWERED (answer == started)
#else
#define ANSWERED true
#endif
#ifndef NO_DEADLINE       /* a handler starts within its lease only */
#define MAY_START (ANSWERED && CLAIM_IS_MINE && J.live)
#else
#define MAY_START ANSWERED
#endif
