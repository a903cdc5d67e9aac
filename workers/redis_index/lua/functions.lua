-- The index functions, sixth part: answers, admissions, and the functions that clients call. It follows addresses.lua.

-- Answers -------------------------------------------------------------------------------------------------
-- A neighbour is an earlier state that shares a bucket. It is a direct match if it shares the digest or the lineage.

local shortlist
do
  -- Whether a neighbour is a direct match. Most have no flags or only the one of full buckets, which is quickly seen.
  local function is_direct(seen, number)
    local flags = seen.flags[number]
    return flags ~= nil and flags ~= IN_FULL_BUCKET and bit.band(flags, BY_DIGEST + BY_LINEAGE) > 0
  end

  -- Return the neighbours as sorted numbers, worst first, each made of its weight and its distance from `own`. Direct
  -- matches come last, and of equal weights the lower number.
  local function ranked_neighbours(seen, own)
    local order = {}
    for number, count in pairs(seen.counts) do
      local weight = math.min(math.floor(count % RARE / WEIGHT), WEIGHT_MAX)
      if is_direct(seen, number) then weight = weight + WEIGHT_MAX + 1 end
      order[#order + 1] = weight * SPAN + own - number
    end
    table.sort(order)
    return order
  end

  -- Return a neighbour, or the representative of its family if it is dead, or 0. A dead neighbour without one is noted
  -- in seen.gone.
  local function living(c, d, neighbour)
    local seen, state = d.seen, read_state(c, neighbour)
    if state.record and not (state.superseded_by > 0 and state.superseded_by <= d.number) then return neighbour end
    local heir = families.heir(c, neighbour)
    if not state.record and heir == 0 then seen.gone[neighbour], seen.some_gone = true, true end
    if heir == 0 or seen.counts[heir] or heir >= d.number then return 0 end
    seen.may_change = true -- another may take its place
    seen.counts[heir] = seen.counts[neighbour]
    seen.flags[heir] = bit.band(seen.flags[neighbour] or 0, IN_FULL_BUCKET)
    return heir
  end

  -- Whether shared keys show more than common text, or one of two texts may be inside the other. `anchors` is the
  -- number of anchors of one of them.
  local function is_telling(c, count, anchors)
    return shares_rare(c, count) or 100 * (count % BAND) >= PRESUMED_PERCENT * anchors
  end

  -- Return the live direct matches and, by weight, up to 2 * limit other live neighbours, of which COMMON_READS share
  -- only common text. Also return whether there are more.
  function shortlist(c, d, limit)
    local order, found, room, reads, common = ranked_neighbours(d.seen, d.number), {}, 2 * limit, 0, 0
    for i = #order, 1, -1 do
      local neighbour = d.number - order[i] % SPAN
      local is_common = not is_telling(c, d.seen.counts[neighbour], d.anchors) and not is_direct(d.seen, neighbour)
      local number = 0
      if is_common and common == COMMON_READS then
        d.seen.may_change = true
      elseif reads == READS then
        return found, true
      else
        reads, number = reads + 1, living(c, d, neighbour)
      end
      local state = number > 0 and read_state(c, number)
      if state and state.doc ~= d.doc then
        local direct = is_direct(d.seen, number)
        if is_common then common = common + 1 end
        if not direct then
          if room == 0 then return found, true end
          room = room - 1
        end
        local count, fewer = d.seen.counts[number], math.min(d.anchors, state.anchors)
        local weight = math.min(math.floor(count % RARE / WEIGHT), WEIGHT_MAX)
        found[#found + 1] = {
          number = number, direct = direct, by_lineage = bit.band(d.seen.flags[number] or 0, BY_LINEAGE) > 0,
          share = weight / math.max(fewer, 1), telling = is_telling(c, count, fewer),
        }
      end
    end
    return found, false
  end
end

local function ranks_before(a, b)
  if a.direct ~= b.direct then return a.direct end
  if a.share ~= b.share then return a.share > b.share end
  return a.number < b.number
end

-- Whether a neighbour is among the few of its family that an answer names: the representative and the best of the others.
-- States of one lineage are not limited. `room` counts by family how many may follow.
local function is_of_the_few(c, one, room, is_found)
  if c.per_family == 0 or one.by_lineage or families.represents(c, one.number) then return true end
  local family = families.of(c, one.number)
  if not room[family] then
    local representative = families.representative(c, family)
    local follows = is_found[representative] and families.represents(c, representative)
    room[family] = FAMILY_CANDIDATES - (follows and 1 or 0)
  end
  room[family] = room[family] - 1
  return room[family] >= 0
end

-- Return the best of the neighbours found, packed, and whether the limit left some out. They are ranked by their share,
-- which is the weight divided by the anchors of the document that has fewer. Behind the first BEST ones, the share must
-- be ENOUGH and the shared keys telling. Families are asked for last, because that takes most of the time.
local function pick_candidates(c, d, found, limit)
  local ranked, is_found, room, picked, others = {unpack(found)}, {}, {}, {}, 0
  table.sort(ranked, ranks_before)
  for i = 1, #found do is_found[found[i].number] = true end
  local cut = false
  for i = 1, #ranked do
    local one = ranked[i]
    local may_be_named = one.direct or others < BEST or one.share >= ENOUGH and one.telling
    if may_be_named and is_of_the_few(c, one, room, is_found) then
      if not one.direct then others = others + 1 end
      if others > limit then
        cut = true
        break
      end
      picked[#picked + 1] = pack_candidate(c, one.number, d.seen.counts[one.number], d.seen.flags[one.number] or 0)
    end
  end
  if #picked < #found then d.seen.may_change = true end
  return table.concat(picked), cut
end

-- Return an answer without its status: full buckets, flags, presumed representative, previous state, candidates.
local function pack_answer(c, d, previous, found, cut)
  local before, flags, seen = '', 0, d.seen
  if previous > 0 and read_state(c, previous).record then
    local bits = bit.bor(seen.flags[previous] or 0, BY_LINEAGE)
    before, flags = pack_candidate(c, previous, seen.counts[previous] or 0, bits), HAS_PREVIOUS
  end
  local candidates, left_out = pick_candidates(c, d, found, c.limit)
  if cut or left_out then flags = flags + CUT end
  if cut or left_out or seen.may_change then flags = flags + MAY_CHANGE end
  return struct.pack(ANSWER_FORMAT, seen.full, flags, d.presumed or 0) .. before .. candidates
end

-- Return the answer to a state that was settled: what was decided.
local function pack_decision(c, number, before)
  local flags = DECIDED + (before ~= '' and HAS_PREVIOUS or 0)
  return struct.pack(ANSWER_FORMAT, 0, flags, 0) .. before .. families.decision(c, number)
end

-- Return a whole answer: status, number, and a result of `pack_answer`. Without the last, the answer says that nothing
-- was found.
local function with_status(status, number, body)
  return status .. pack_number(number) .. (body or struct.pack(ANSWER_FORMAT, 0, 0, 0))
end

-- Admission -----------------------------------------------------------------------------------------------

-- Return the key and the field where the answer to a removal at this position is stored.
local function answer_slot(c, d)
  return c.tag .. REMOVALS_KEY .. struct.pack('>I2I6', d.partition, math.floor(d.offset / ANSWER_OFFSETS)),
    string.char(d.offset % ANSWER_OFFSETS)
end

local function move_checkpoint(c, d)
  if d.offset > d.checkpoint then c.checkpoints[d.partition] = d.offset end
end

-- Iterate over the states of a document with their numbers, from this one back to earlier ones.
local function history(c, number, most)
  local left = most or WALK
  return function()
    local own, state = number, left > 0 and read_state(c, number)
    if not state or not state.record then return nil end
    left, number = left - 1, state.prev
    return own, state
  end
end

-- Return the state that was current when `own` arrived. States that arrived late never were: they are superseded by
-- their own number.
local function previous_of(c, current, own)
  for number, state in history(c, current, 2 * WALK) do
    if number < own and state.superseded_by ~= number then return number end
  end
  return 0
end

-- Count a twin as a neighbour that shares all keys.
local function see_twin(d, twin)
  d.seen.counts[twin] = BAND * d.bands + d.anchors
  d.seen.flags[twin] = bit.bor(bit.band(d.seen.flags[twin] or 0, BY_LINEAGE), BY_DIGEST)
end

-- Return what was decided about a state, or answer again if nothing was.
local function answer_again(c, d, current, number)
  local state, member = read_state(c, number), families.member(c, number)
  if member and member.ordinal > 0 then return with_status(REPLAYED, number, pack_decision(c, number, '')) end
  -- Documents that came while it was not in all its buckets have not seen it.
  local was_denied = families.was_denied(c, number)
  d.number, d.presumed = was_denied and c.last + 1 or number, families.presumed(c, number)
  local presumed = d.presumed > 0 and read_state(c, d.presumed)
  if presumed and presumed.record and presumed.version == state.version then
    d.seen = new_seen()
    lineage_bucket(c, d, visit)
    tally_visited(d)
    see_twin(d, d.presumed)
  else
    gather(c, d)
  end
  if was_denied then d.seen.may_change = true end
  local found, cut = shortlist(c, d, c.limit)
  return with_status(REPLAYED, number, pack_answer(c, d, previous_of(c, current, number), found, cut))
end

-- Return the number of the state that the record at this position made, or nil.
local function state_at(c, d, current)
  for number, state in history(c, current) do
    if state.partition == d.partition and state.offset == d.offset then return number end
  end
end

-- Return the number of the state of the same record on `documents`, or nil. A signer that was stopped before its commit
-- signs a record again. A state that was observed after the current one is new.
local function signed_before(c, d, current)
  if bit.band(d.flags, HAS_ORIGIN) == 0 or d.observed > read_state(c, current).observed then return nil end
  local found
  for number, state in history(c, current) do
    if state.version == d.version then
      local partition, offset = origin_of(state)
      if partition == d.sent_to and offset == d.sent_at then found = number end
    end
  end
  return found
end

-- Return the state of an admission, as if the state of this number came before it.
local function arriving_state(d, prev)
  local rest_at = ADMISSION_SIZE + 1 + KEY_SIZE * (2 + d.bands + d.anchors)
  return parse_record(struct.pack(RECORD_FORMAT, prev, d.partition, d.offset, d.observed, d.version, d.bands, d.anchors,
    d.doc) .. string.sub(d.blob, rest_at))
end

-- Return the number of the state that an admission repeats, or nil: the last one that was not observed after it, if both
-- have one version. A record that was unchanged stores no state, so another text may be current when it is signed again.
local function repeated_state(c, d, current)
  if d.observed > read_state(c, current).observed then return nil end
  local own = arriving_state(d, current)
  for number, state in history(c, current) do
    if not was_observed_before(own, state) then return state.version == d.version and number or nil end
  end
end

-- Return the number of the newest state of a document that has the version of this admission and may have been there
-- when its record came, or nil.
local function same_version(c, d, current)
  for number, state in history(c, current) do
    if state.version == d.version and (state.partition ~= d.partition or state.offset < d.offset) then return number end
  end
end

-- Return the answer to a document that has not changed.
local function unchanged(c, d, number)
  local before = pack_candidate(c, number, BAND * d.bands + d.anchors, BY_DIGEST + BY_LINEAGE)
  local member = families.member(c, number)
  local body = member and member.ordinal > 0 and pack_decision(c, number, before)
    or struct.pack(ANSWER_FORMAT, 0, HAS_PREVIOUS, 0) .. before
  return with_status(UNCHANGED, number, body)
end

-- Make d.number the current state of its document.
local function register(c, d)
  local chunk = c.tag .. REGISTRY_KEY .. d.chunk
  local is_new = redis.call('HSET', chunk, registry_field(d.doc), d.entry) == 1
  if is_new and c.floor > 1 and causes_sweep(d.doc) then sweep_chunk(c, false, chunk) end
end

local function take_number(c, d)
  c.last = c.last + 1
  d.number, d.entry = c.last, pack_entry(c.last)
end

-- Return the state that a late one is inserted behind: the last in the chain that was observed after it.
local function next_observed(c, late, current)
  local at = current
  for _ = 1, WALK do
    local state = read_state(c, read_state(c, at).prev)
    if not state.record or not was_observed_before(late, state) then break end
    at = read_state(c, at).prev
  end
  return at
end

-- Return the oldest living document with an equal text that is young enough to stand for this one, or 0.
local function find_twin(c, d)
  local entries = d.existing[#d.existing].content.entries
  for i = 1, #entries do
    local number = entries[i]
    local state = read_state(c, number)
    if state.record and state.superseded_by == 0 and state.version == d.version and not is_aging(c, number) then
      local representative = families.representative(c, families.of(c, number))
      if families.has_all_keys(c, number) and (representative == 0 or not is_aging(c, representative)) then
        return number
      end
    end
  end
  return 0
end

-- Return the owner of an equal text that d.number may share, the text and its patch, or 0. An aging owner gets no more
-- followers, because they prolong the life of its whole group.
local function find_owner(c, d, state)
  local bucket = d.existing and d.existing[1]
  if not bucket or bucket.kind ~= c.kinds.digest then return 0 end
  local entries = bucket.content.entries
  for i = 1, #entries do
    local number = entries[i]
    local other = read_state(c, number)
    if other.version == state.version and text_of(other) == text_of(state) then
      local owner = other.owner > 0 and other.owner or number
      if not is_aging(c, owner) then return owner, text_of(other), other.owner > 0 and patch_of(other) or '' end
    end
  end
  return 0
end

-- Return the young representative with which a document shares most of the anchors of both, or 0.
local function find_presumed(c, d, found)
  local best, best_share = 0, 0
  for i = 1, #found do
    local number = found[i].number
    local shared, most = d.seen.counts[number] % BAND, math.max(d.anchors, read_state(c, number).anchors)
    local share = shared / math.max(most, 1)
    if most > 0 and 100 * shared >= PRESUMED_PERCENT * most
      and (share > best_share or share == best_share and number < best)
      and families.represents(c, number) and families.has_all_keys(c, number) and not is_aging(c, number) then
      best, best_share = number, share
    end
  end
  return best
end

-- Whether a document leaves out buckets of this content: those that have the presumed representative, or enough others
-- of its family.
local function leaves_out(content, presumed, members)
  local entries, count = content.entries, 0
  for i = 1, #entries do
    if entries[i] == presumed then return true end
    if members[entries[i]] then count = count + 1 end
  end
  return count >= FAMILY_CANDIDATES
end

-- Enter the existing buckets of a document, except for those that it leaves out.
local function enter_existing(c, d, found)
  local members = {}
  if d.presumed > 0 then
    local family = families.of(c, d.presumed)
    for i = 1, #found do members[found[i].number] = families.of(c, found[i].number) == family or nil end
  end
  for i = 1, #d.existing do
    local bucket = d.existing[i]
    local content = bucket.content
    if d.presumed > 0 and bucket.kind.bits == 0 and content.is_left_out == nil then
      content.is_left_out = leaves_out(content, d.presumed, members)
    end
    if bucket.kind.bits > 0 or not content.is_left_out then add_entry(c, d, bucket) end
  end
end

-- Look into the buckets of a document, which d.number enters if they are new. The buckets of its text are left alone if
-- a twin stands for it. Return the twin, or 0.
local function offer_buckets(c, d, may_thin)
  d.existing, d.seen = {}, new_seen()
  digest_bucket(c, d, offer)
  local twin = may_thin and #d.existing > 0 and find_twin(c, d) or 0
  if twin > 0 then d.seen = new_seen() end
  lineage_bucket(c, d, offer)
  if twin == 0 then each_text_bucket(c, d, offer) end
  tally_visited(d)
  if twin > 0 then see_twin(d, twin) end
  return twin
end

-- Store a new state of a document and return its answer. A state that was observed before the current one is late: it
-- is inserted in the chain, superseded by its own number, and enters no bucket.
local function store(c, d, current)
  take_number(c, d)
  local former = current > 0 and read_state(c, current)
  local state = arriving_state(d, current)
  local behind = former and was_observed_before(state, former) and next_observed(c, state, current)
  if behind then state = with_previous(state, read_state(c, behind).prev) end
  c.states[d.number] = state
  local may_thin, twin = not behind and c.per_family > 0, 0
  if behind then gather(c, d) else twin = offer_buckets(c, d, may_thin) end
  local found, cut = shortlist(c, d, c.limit)
  d.presumed = twin
  if may_thin and twin == 0 then d.presumed = find_presumed(c, d, found) end
  -- A representative in flight may be updated before a copy joins it.
  if former and twin == 0 and not families.facts(c, families.of(c, d.presumed)) then d.presumed = 0 end
  local body = pack_answer(c, d, current, found, cut)
  local record = behind and superseded_record(state, d.number) or state.record
  local owner, text, patch = find_owner(c, d, state)
  if owner > 0 then
    texts.follow(c, owner)
    record = shared_record(state, patch, owner)
  end
  if d.presumed > 0 then
    local member = struct.pack(MEMBER_FORMAT, d.presumed, 0, 0)
    write_state(c, d.number, record, text, member_field(d.number), member)
    c.states[d.number].packed_member = member
  else
    write_state(c, d.number, record, text)
  end
  if behind then
    set_previous(c, behind, d.number)
  else
    families.note_label(c, d.number) -- before it is registered, so that a call that fails halfway does this again
    enter_existing(c, d, found)
    register(c, d)
    if former then
      supersede(c, current, d.number)
      families.leave(c, current)
    end
    if d.seen.some_gone then each_bucket(c, d, remove_gone) end
  end
  return with_status(former and UPDATED or NEW, d.number, body)
end

-- Give a document that is seen again late in its life a new number, and return it. No position leads to the new state,
-- because it has no events.
local function refresh(c, d, current)
  take_number(c, d)
  local head = struct.pack('>I5I2I6', current, NO_PARTITION, 0) -- the beginning of RECORD_FORMAT
  write_state(c, d.number, head .. string.sub(whole_record(read_state(c, current)), #head + 1))
  d.existing, d.seen, d.presumed = {}, new_seen(), 0
  each_bucket(c, d, offer)
  enter_existing(c, d, {})
  register(c, d)
  supersede(c, current, d.number)
  families.renumber(c, current, d.number)
  families.note_label(c, d.number)
  c.refreshed[d.number] = true
  return d.number
end

local function removed_key(c, half_hour)
  return c.tag .. REMOVED_KEY .. decimal(half_hour)
end

-- Return the removal of a document as it is remembered, if it does not come before the record of this admission on
-- `documents`. Nil: there was none within the last hour.
local function later_removal(c, d)
  if bit.band(d.flags, HAS_ORIGIN) == 0 or c.now - c.removed > REMOVAL_MS then return nil end
  local half_hour = math.floor(c.now / HALF_HOUR_MS)
  for back = 0, REMOVAL_MS / HALF_HOUR_MS do
    local packed = redis.call('HGET', removed_key(c, half_hour - back), d.doc)
    if packed then
      packed = packed .. string.rep('\0', REMOVED_SIZE - #packed) -- a former release wrote no timestamp
      local at, partition, offset, sent_ms = struct.unpack(REMOVED_FORMAT, packed)
      -- As `Origin.is_before`: the offsets of a topic that was deleted and made anew begin again.
      local is_of_a_new_topic = sent_ms > 0 and d.sent_ms > sent_ms + CLOCKS_MS
      local is_later = partition == d.sent_to and d.sent_at <= offset and not is_of_a_new_topic
      return is_later and c.now - at <= REMOVAL_MS and packed or nil
    end
  end
  return nil
end

-- Remember a removal, so that documents that were sent before it are refused.
local function remember_removal(c, d)
  if bit.band(d.flags, HAS_ORIGIN) == 0 then return end
  local key = removed_key(c, math.floor(c.now / HALF_HOUR_MS))
  redis.call('HSET', key, d.doc, struct.pack(REMOVED_FORMAT, math.max(c.now, 0), d.sent_to, d.sent_at, d.sent_ms))
  redis.call('PEXPIRE', key, 2 * REMOVAL_MS)
  redis.call('HSET', c.facts, 'removed', decimal(c.now))
  c.removed = c.now
end

-- Admit a document and return its answer.
local function put(c, d)
  local current = current_number(c, d.chunk, d.doc)
  if d.position and (d.offset <= d.checkpoint or c.aborted >= c.floor) then
    local number = state_at(c, d, current)
    if number then return answer_again(c, d, current, number) end
  end
  local before = current > 0 and signed_before(c, d, current)
  if before then return answer_again(c, d, current, before) end
  local repeated = current > 0 and repeated_state(c, d, current)
  if repeated and repeated ~= current then return unchanged(c, d, repeated) end
  if d.position and d.offset <= d.checkpoint then
    -- A record that stored no state, although one of its version is stored, was unchanged then.
    local same = same_version(c, d, current)
    return same and unchanged(c, d, same) or with_status(STALE, 0)
  end
  local removal = later_removal(c, d)
  if removal then
    return with_status(OVERTAKEN, 0, struct.pack(ANSWER_FORMAT, 0, current > 0 and FOUND or 0, 0) .. removal)
  end
  if current > 0 and read_state(c, current).version == d.version then
    if is_aging(c, current) then current = refresh(c, d, current) end
    return unchanged(c, d, current)
  end
  return store(c, d, current)
end

-- Return the numbers of up to MAX_RECORDS states of a document, and the number of the next one, or 0.
local function states_of(c, current)
  local chain, number = {}, current
  while number > 0 and #chain < MAX_RECORDS do
    local state = read_state(c, number)
    if not state.record then return chain, 0 end
    chain[#chain + 1] = number
    number = state.prev
  end
  return chain, number > 0 and read_state(c, number).record and number or 0
end

-- Delete the record of a state from its group. A text that others share stays.
local function delete_record(c, number)
  local key = group_key(c, number)
  local got = redis.call('HMGET', key, record_field(number), followers_field(number))
  if not got[1] then return end
  local state = parse_record(got[1])
  if got[2] then redis.call('HSET', key, text_field(number), text_of(state)) end
  redis.call('HDEL', key, record_field(number))
  if state.owner > 0 then texts.unfollow(c, state.owner) end
end

-- Delete the records of states. Their members stay, so that their buckets still lead to the family.
local function delete_states(c, chain)
  for i = #chain, 1, -1 do
    local number = chain[i]
    delete_record(c, number)
    if is_spared(c, number) then redis.call('HDEL', spared_key(c, number), record_field(number)) end
    c.states[number] = {superseded_by = 0, packed_member = c.states[number] and c.states[number].packed_member}
  end
end

-- Remove a document and return the answer, or nil while states are left for another call.
local function remove(c, d)
  local key, field
  if d.position then key, field = answer_slot(c, d) end
  if d.position and d.offset <= d.checkpoint then
    local stored = redis.call('HGET', key, field)
    return stored and with_status(REMOVED, 0, stored) or with_status(STALE, 0)
  end
  if later_removal(c, d) then return with_status(REMOVED, 0, struct.pack(ANSWER_FORMAT, 0, REPEATED, 0)) end
  local current = current_number(c, d.chunk, d.doc)
  local was_found = current > 0
  if d.position and not was_found then
    local stored = redis.call('HGET', key, field)
    was_found = stored and bit.band(select(2, struct.unpack(ANSWER_FORMAT, stored)), FOUND) > 0
  end
  local body = struct.pack(ANSWER_FORMAT, 0, was_found and FOUND or 0, 0)
  local chain, rest = states_of(c, current)
  -- Store the answer before its cause is deleted, and delete the chain from its end. Either survives a failure.
  if d.position then
    redis.call('HSET', key, field, body)
    redis.call('PEXPIRE', key, ANSWERS_MS)
  end
  if was_found and #chain > 0 then
    read_state(c, current).superseded_by = current
    families.leave(c, current)
  end
  delete_states(c, chain)
  if rest > 0 then
    redis.call('HSET', c.tag .. REGISTRY_KEY .. d.chunk, registry_field(d.doc), pack_entry(rest))
    return nil
  end
  if current > 0 then redis.call('HDEL', c.tag .. REGISTRY_KEY .. d.chunk, registry_field(d.doc)) end
  remember_removal(c, d)
  return with_status(REMOVED, 0, body)
end

-- Parts of a call -----------------------------------------------------------------------------------------

-- Return what a call knows: the facts of the shard, its limits, and what it reads and counts. Return nil and the reply
-- that refuses the call if the index has another epoch, or is being rebuilt by another client: a rebuild appends its
-- lease to the epoch.
local function begin(facts, epoch, cap, limit, retention, per_family)
  local got = redis.call('HMGET', facts, 'epoch', 'state', 'seq', 'done', 'floor', 'mark', 'aborted',
    'chunks_' .. REGISTRY_KEY, 'lease', 'rebuilt', 'removed', 'labels', 'addresses')
  if got[1] ~= string.sub(epoch, 1, EPOCH_BYTES) then return nil, {'LOST'} end
  if got[2] ~= 'ready' and got[9] ~= string.sub(epoch, EPOCH_BYTES + 1) then return nil, {'REBUILDING'} end
  cap = tonumber(cap)
  local c = {
    facts = facts, tag = string.sub(facts, 1, -#FACTS_KEY - 1),
    seq = tonumber(got[3]), last = tonumber(got[4]), floor = tonumber(got[5]), mark = tonumber(got[6]),
    aborted = tonumber(got[7]), registry_chunks = tonumber(got[8]), rebuilt = tonumber(got[10] or 0),
    spill = cap - ANCHOR_HEADS, limit = tonumber(limit), retention = tonumber(retention),
    per_family = tonumber(per_family or 0), families = {},
    states = {}, wanted = {}, checkpoints = {}, overflows = {}, keys = 0, entries = 0, reads = 0,
    spared = {}, spared_since = -1, refreshed = {}, removed = tonumber(got[11] or 0), has_labels = got[12] and true,
    has_addresses = got[13] and true,
  }
  c.now, c.spared_count = c.mark, redis.call('ZCARD', c.tag .. SPARED_KEY)
  c.kinds = {
    digest = {letter = DIGEST_KEY, heads = HEADS, cap = BAND_CAP, count = 0, anchors = 0, bits = BY_DIGEST},
    lineage = {letter = LINEAGE_KEY, heads = 0, cap = LINEAGE_CAP, count = 0, anchors = 0, bits = BY_LINEAGE},
    band = {letter = BAND_KEY, heads = HEADS, cap = BAND_CAP, count = BAND, anchors = BAND_ANCHORS, bits = 0},
    anchor = {letter = ANCHOR_KEY, heads = ANCHOR_HEADS, cap = cap, count = 1, anchors = 1, bits = 0, spills = true},
  }
  for _, kind in pairs(c.kinds) do kind.prefix = c.tag .. kind.letter end
  return c
end

-- Repair what a call that failed halfway has left. Keep the states that it registered and mark those that they
-- superseded. Delete the states that no registry entry leads to.
local function recover(c)
  for number = c.last + 1, c.seq do
    local state = read_state(c, number)
    if state.record then
      local high = struct.unpack('>I4', state.doc)
      local current = current_number(c, struct.pack('>I4', high % c.registry_chunks), state.doc)
      local at = current
      for _ = 1, WALK do
        if at == 0 or at == number then break end
        at = read_state(c, at).prev or 0
      end
      if at ~= number then
        delete_states(c, {number})
      elseif current == number and read_state(c, state.prev).record
        and read_state(c, state.prev).superseded_by == 0 then
        supersede(c, state.prev, number)
      end
    end
  end
  redis.call('HSET', c.facts, 'aborted', decimal(c.seq))
  c.aborted, c.last = c.seq, c.seq
end

-- Return the document of an admission, with the checkpoint of its partition if it has a position.
local function parse_admission(c, blob)
  local d = {blob = blob, most_exist = 0}
  d.chunk, d.doc, d.flags, d.partition, d.offset, d.previous, d.observed, d.version, d.bands, d.anchors, d.sent_to,
    d.sent_at, d.sent_ms = struct.unpack(ADMISSION_FORMAT, blob)
  d.previous = d.previous - 1
  d.position = bit.band(d.flags, HAS_POSITION) > 0
  if d.position then
    if not c.checkpoints[d.partition] then
      c.checkpoints[d.partition] = tonumber(redis.call('HGET', c.facts, CHECKPOINT_FIELD .. d.partition) or -1)
    end
    d.checkpoint = c.checkpoints[d.partition]
  end
  return d
end

-- Return packed numbers, then their records: the states that the answers name and the caller does not have.
local function wanted_records(c, first)
  local numbers, list = {}, {''}
  for number, record in pairs(c.wanted) do
    if number < first or c.refreshed[number] then
      numbers[#numbers + 1] = number
      list[#list + 1] = record
    end
  end
  if #numbers > 0 then list[1] = pack_numbers(numbers, 1, #numbers) end
  return list
end

-- Add the overflows of this call to the counts. MAX_OVERFLOWS buckets have a count each, all others one together.
local function count_overflows(c)
  local names, sums, rest = {}, {}, 0
  for bucket in pairs(c.overflows) do names[#names + 1] = bucket end
  if #names == 0 then return end
  local key = c.tag .. OVERFLOWS_KEY
  local known, room = redis.call('HMGET', key, unpack(names)), MAX_OVERFLOWS - redis.call('HLEN', key)
  for i = 1, #names do
    local count = c.overflows[names[i]]
    if known[i] or room > 0 then
      if not known[i] then room = room - 1 end
      sums[#sums + 1] = names[i]
      sums[#sums + 1] = decimal(tonumber(known[i] or 0) + count)
    else
      rest = rest + count
    end
  end
  if rest > 0 then
    sums[#sums + 1] = '*'
    sums[#sums + 1] = decimal(tonumber(redis.call('HGET', key, '*') or 0) + rest)
  end
  redis.call('HSET', key, unpack(sums))
end

-- Write the checkpoints and the last number: the call is done.
local function commit(c)
  local fields = {'seq', decimal(c.last), 'done', decimal(c.last)}
  for partition, offset in pairs(c.checkpoints) do
    fields[#fields + 1] = CHECKPOINT_FIELD .. partition
    fields[#fields + 1] = decimal(offset)
  end
  redis.call('HSET', c.facts, unpack(fields))
end

-- Whether a call has done so much that it leaves the rest to another one.
local function is_full(c)
  return c.keys >= MAX_KEYS or c.entries >= MAX_ENTRIES or c.reads >= MAX_RECORDS
end

-- Return the answer to one admission, or nil if a removal needs another call.
local function admit_one(c, d)
  if bit.band(d.flags, POSITION_ONLY) > 0 then return '' end
  if bit.band(d.flags, IS_LABEL) > 0 then
    families.put_label(c, d)
    return with_status(LABELLED, 0)
  end
  if bit.band(d.flags, IS_REMOVAL) > 0 then return remove(c, d) end
  return put(c, d)
end

-- Functions that clients call -----------------------------------------------------------------------------
-- The only key of each is that of the facts of a shard (`claim`: that of the schemes of a namespace). `epoch` is the
-- epoch of the index, with the lease of the caller if it rebuilds the index. LOST and REBUILDING refuse a call: see
-- `begin`. `now` is in ms since 1970, or '' for the clock of the server.

-- admit
-- Add each document to the index and return its earlier neighbours.
-- arguments: epoch, bucket cap, limit of candidates, retention in ms, events for each family, now, admissions
-- reply: OK, answers to the first admissions, records | GAP, partition, checkpoint | LOST | REBUILDING
local function admit(keys, args)
  local c, refusal = begin(keys[1], args[1], args[2], args[3], args[4], args[5])
  if not c then return refusal end
  if c.last < c.seq then recover(c) end
  advance(c, tonumber(args[6]) or clock())
  redis.call('HSET', c.facts, 'seq', decimal(c.last + #args - 6))
  local first, answers, gap = c.last + 1, {}, nil
  for i = 7, #args do
    local d = parse_admission(c, args[i])
    if d.position and d.checkpoint < d.previous then
      gap = {'GAP', d.partition, d.checkpoint}
      break
    end
    local answer = admit_one(c, d)
    if not answer then break end
    answers[#answers + 1] = answer
    if d.position then move_checkpoint(c, d) end
    if is_full(c) then break end
  end
  count_overflows(c)
  commit(c)
  if gap and #answers == 0 then return gap end
  return {'OK', answers, wanted_records(c, first)}
end

-- Set the time of a call that only reads. The last admission, which set the floor, may be long ago.
local function look_from(c, now)
  c.now = math.max(now, c.mark)
  if c.retention == 0 then return end
  c.floor, c.spared_since = math.max(c.floor, first_within(c, c.retention)), c.now - c.retention
end

-- Return for each candidate of a packed answer its number, the founder of its family and the facts of that.
local function families_of_candidates(c, answer)
  local list = {}
  for at = ANSWER_SIZE + 1, #answer, CANDIDATE_SIZE do
    local number = struct.unpack(CANDIDATE_FORMAT, answer, at)
    local founder, facts = families.packed(c, number)
    list[#list + 1], list[#list + 2], list[#list + 3] = number, founder, facts
  end
  return list
end

-- look_up
-- Return the neighbours that a document with these keys would have, and their families, without admitting it.
-- arguments: epoch, bucket cap, limit of candidates, retention in ms, events for each family, now, keys in the form of
-- an admission
-- reply: OK, answer, records, now, families of the candidates, 1 if any family has details | LOST | REBUILDING
local function look_up(keys, args)
  local c, refusal = begin(keys[1], args[1], args[2], args[3], args[4], args[5])
  if not c then return refusal end
  local d, now = parse_admission(c, args[7]), tonumber(args[6]) or clock()
  look_from(c, now)
  d.number = c.seq + 1
  gather(c, d)
  local found, cut = shortlist(c, d, c.limit)
  local answer = pack_answer(c, d, 0, found, cut)
  local known = families_of_candidates(c, answer)
  return {'OK', with_status(NEW, 0, answer), wanted_records(c, d.number), decimal(now), known,
    (c.has_labels or c.has_addresses) and 1 or 0}
end

-- details
-- Return what the family of a state is labelled as, and how many addresses sent it to how many within the last hour.
-- arguments: epoch, retention in ms, now, number of the state, age in ms that a label must have
-- reply: OK, sums of the weights of spam and of ham, senders, recipients | LOST | REBUILDING
local function details(keys, args)
  local c, refusal = begin(keys[1], args[1], ANCHOR_HEADS, 0, args[2])
  if not c then return refusal end
  look_from(c, tonumber(args[3]) or clock())
  local family = families.of(c, unpack_packed(args[4])[1])
  local spam, ham = families.count_labels(c, family, c.now - tonumber(args[5]))
  return {'OK', spam, ham, families.count_addresses(c, family, SENDERS), families.count_addresses(c, family, RECIPIENTS)}
end

-- Add a number to a bucket that it left out, and tally the others there. In a bucket that it is in, tally those that came
-- later: when this is repeated, it is not known any more which buckets it had left out.
local function enter_late(c, d, kind, chunk, field)
  local packed = packed_bucket(c, kind, chunk, field)
  local entries = packed and entries_of(c, packed) or {}
  local later, at, is_in = {}, 1, false
  for i = 1, #entries do
    if entries[i] == d.own then is_in = true end
    if entries[i] > d.own then later[#later + 1] = entries[i] else at = i + 1 end
  end
  tally(d.seen, is_in and later or entries, d.number, kind, 1)
  if is_in then return end
  table.insert(entries, at, d.own)
  if #entries > kind.cap then table.remove(entries, kind.heads + 1) end
  rewrite_bucket(c, kind, chunk, field, entries)
end

-- enter
-- Add states to the buckets that they left out, and return the documents there that have not been compared with them.
-- arguments: epoch, bucket cap, limit of candidates, retention in ms, events for each family, numbers and admissions
-- reply: OK, candidates of the first ones, records | LOST | REBUILDING
local function enter(keys, args)
  local c, refusal = begin(keys[1], args[1], args[2], args[3], args[4], args[5])
  if not c then return refusal end
  local answers = {}
  for i = 6, #args, 2 do
    local d = parse_admission(c, args[i + 1])
    d.own, d.number, d.seen = unpack_packed(args[i])[1], c.last + 1, new_seen()
    answers[#answers + 1] = ''
    if read_state(c, d.own).record then
      each_text_bucket(c, d, enter_late)
      families.deny(c, d.own)
      answers[#answers] = pick_candidates(c, d, (shortlist(c, d, c.limit)), c.limit)
    end
    if is_full(c) then break end
  end
  return {'OK', answers, wanted_records(c, c.last + 1)}
end

-- settle
-- Record decisions about states before their verdicts and events are sent.
-- arguments: epoch, retention in ms, events for each family, now, settlements
-- reply: OK, answers, records | LOST | REBUILDING
local function settle(keys, args)
  local c, refusal = begin(keys[1], args[1], ANCHOR_HEADS, 0, args[2], args[3])
  if not c then return refusal end
  c.now = math.max(tonumber(args[4]) or clock(), c.mark, 0)
  local answers = {}
  for i = 5, #args do answers[#answers + 1] = families.settle(c, args[i]) end
  return {'OK', answers, wanted_records(c, c.last + 1)}
end

-- state
-- Return whether the index can be used.
-- arguments: epoch
-- reply: OK | LOST | REBUILDING
local function state(keys, args)
  local c, refusal = begin(keys[1], args[1], ANCHOR_HEADS, 0, 0)
  return c and {'OK'} or refusal
end

-- lengths
-- Return the number of fields of chunks, also of a shard that cannot be used.
-- arguments: letter of their kind, numbers of the chunks
local function lengths(keys, args)
  local prefix, chunks, found = string.sub(keys[1], 1, -#FACTS_KEY - 1) .. args[1], args[2], {}
  for at = 1, #chunks, CHUNK_BYTES do
    found[#found + 1] = redis.call('HLEN', prefix .. string.sub(chunks, at, at + CHUNK_BYTES - 1))
  end
  return found
end

-- Write the facts of an empty shard. The names and values of the layout begin at args[first]. The epoch, by which
-- `open` knows that the shard exists, is written last.
local function create(facts, state_name, epoch, args, first)
  redis.call('HSET', facts, 'format', FORMAT, 'state', state_name, 'seq', '0', 'done', '0', 'floor', '1', 'mark', '-1',
    'aborted', '0', unpack(args, first))
  redis.call('HSET', facts, 'epoch', epoch)
end

-- open
-- Return the layout of a shard, which is created first if it is missing and may be created.
-- arguments: '1' to create it, a new epoch, names and values of the layout
-- reply: the values of LAYOUT_FIELDS | nothing, if there is no shard
local function open(keys, args)
  if redis.call('HEXISTS', keys[1], 'epoch') == 0 then
    if args[1] ~= '1' then return {} end
    create(keys[1], 'ready', args[2], args, 3)
  end
  return redis.call('HMGET', keys[1], unpack(LAYOUT_FIELDS))
end

-- rebuild
-- Begin, continue or finish a rebuild of a shard, which one client at a time may do.
-- arguments: lease (8 bytes), its length in ms, now, 'begin', a new epoch, names and values of the layout
-- reply: the values of LAYOUT_FIELDS | FILLED, if it is not empty | HELD, if another client has a lease
-- arguments: lease, its length in ms, now, 'renew' or 'finish'
-- reply: OK | HELD
local function rebuild(keys, args)
  local facts, lease, step = keys[1], args[1], args[4]
  local got = redis.call('HMGET', facts, 'state', 'lease', 'lease_until', 'seq', 'epoch')
  local now = tonumber(args[3]) or clock()
  local is_ours = got[1] == 'rebuilding' and got[2] == lease
  if step ~= 'begin' then
    if got[1] == 'ready' then return {'OK'} end
    if not is_ours then return {'HELD'} end
  end
  if step == 'finish' then
    redis.call('HSET', facts, 'rebuilt', got[4], 'state', 'ready')
    return {'OK'}
  end
  if step == 'begin' then
    if got[1] == 'ready' and tonumber(got[4]) > 0 then return {'FILLED'} end
    if got[1] == 'rebuilding' and not is_ours and tonumber(got[3]) > now then return {'HELD'} end
    if got[1] ~= 'rebuilding' or not got[5] then
      local tag = string.sub(facts, 1, -#FACTS_KEY - 1)
      for _, letter in ipairs({FACTS_KEY, MARKS_KEY, SPARED_KEY, OVERFLOWS_KEY}) do
        redis.call('DEL', tag .. letter)
      end
      create(facts, 'rebuilding', args[5], args, 6)
    end
  end
  redis.call('HSET', facts, 'lease', lease, 'lease_until', decimal(now + tonumber(args[2])))
  return step == 'begin' and redis.call('HMGET', facts, unpack(LAYOUT_FIELDS)) or {'OK'}
end

-- claim
-- Change entries of the hash of schemes, unless one of them was changed meanwhile.
-- arguments: for each entry: name, expected value ('': none), new value
-- reply: 1 | 0, if an entry has another value
local function claim(keys, args)
  for i = 1, #args, 3 do
    if (redis.call('HGET', keys[1], args[i]) or '') ~= args[i + 1] then return 0 end
  end
  for i = 1, #args, 3 do redis.call('HSET', keys[1], args[i], args[i + 2]) end
  return 1
end

-- probe
-- Try every command that the functions need.
-- arguments: none
-- reply: commands that the server refuses, encoding of a hash with a value of 8 KB
local function probe(keys)
  local key, refused = string.sub(keys[1], 1, -#FACTS_KEY - 1) .. PROBE_KEY, {}
  local function try(...)
    local reply = redis.pcall(...)
    if type(reply) == 'table' and reply.err then refused[#refused + 1] = string.lower((...)) end
    return reply
  end
  try('TIME')
  try('DEL', key)
  try('HSET', key, 'f', string.rep('v', 8192))
  local encoding = try('OBJECT', 'ENCODING', key)
  try('HSETNX', key, 'g', 'v')
  try('HGET', key, 'f')
  try('HMGET', key, 'f', 'g')
  try('HGETALL', key)
  try('HEXISTS', key, 'f')
  try('HLEN', key)
  try('HDEL', key, 'f', 'g')
  try('RPUSH', key, 'v')
  try('LINDEX', key, 0)
  try('LPOP', key)
  try('ZADD', key, 1, 'v')
  try('ZSCORE', key, 'v')
  try('ZCARD', key)
  try('ZCOUNT', key, 0, 0)
  try('ZUNIONSTORE', key, 1, key)
  try('ZREMRANGEBYSCORE', key, 0, 0)
  try('ZREMRANGEBYRANK', key, 0, 0)
  try('SET', key, 'v', 'PX', 60000)
  try('APPEND', key, 'v')
  try('GETRANGE', key, 0, 0)
  try('SETRANGE', key, 0, 'v')
  try('PEXPIRE', key, 60000)
  try('DEL', key)
  return {refused, type(encoding) == 'string' and encoding or ''}
end

redis.register_function('nearstream_admit_@@', admit)
redis.register_function('nearstream_enter_@@', enter)
redis.register_function('nearstream_settle_@@', settle)
redis.register_function('nearstream_open_@@', open)
redis.register_function('nearstream_rebuild_@@', rebuild)
redis.register_function('nearstream_claim_@@', claim)
redis.register_function('nearstream_probe_@@', probe)
redis.register_function{function_name = 'nearstream_look_up_@@', callback = look_up, flags = {'no-writes'}}
redis.register_function{function_name = 'nearstream_details_@@', callback = details, flags = {'no-writes'}}
redis.register_function{function_name = 'nearstream_state_@@', callback = state, flags = {'no-writes'}}
redis.register_function{function_name = 'nearstream_lengths_@@', callback = lengths, flags = {'no-writes'}}
