import { build, fixedQuery, type Param } from '../database/fixed-query.ts'

/** Ends a session that is open. */
export const endSession = fixedQuery((param: Param<{ id: string; ended_at: number; end_reason: string }>) =>
  build
    .updateTable('sessions')
    .set({ ended_at: param('ended_at'), end_reason: param('end_reason') })
    .where('id', '=', param('id'))
    .where('ended_at', 'is', null),
)
