-- The index on the server: answers, admissions, calls. It is joined to index.lua.

-- Answers -------------------------------------------------------------------------------------------------

local function candidate(c, number, count, flags)
  c.wanted[number] = read(c, number).record
  return struct.pack(CANDIDATE, number, math.floor(count / BAND) % (WEIGHT / BAND), count % BAND, flags)
end

-- Weights of neighbours with their numbers, packed so that they sort: named ones first, ties by number.
local function weighed(seen, own)
  local order = {}
  for number, count in pairs(seen.counts) do
    local weight = math.min(math.floor(count / WEIGHT), WEIGHT_MAX)
    if bit.band(seen.flags[number] or 0, BY_DIGEST + BY_LINEAGE) > 0 then weight = weight + WEIGHT_MAX + 1 end
    order[#order + 1] = weight * SPAN + own - number
  end
  table.sort(order)
  return order
end

-- Twice as many living neighbours as are wanted, by weight, and named ones besides; whether there are more. What has no
-- record any more is noted in seen.gone.
local function shortlist(c, d, limit)
  local order, found, room, reads = weighed(d.seen, d.number), {}, 2 * limit, 0
  for i = #order, 1, -1 do
    if reads == READS then return found, true end
    reads = reads + 1
    local number, weight = d.number - order[i] % SPAN, math.floor(order[i] / SPAN)
    local state = read(c, number)
    if not state.record then
      d.seen.gone[number], d.seen.some_gone = true, true
    elseif state.doc ~= d.doc and not (state.dead > 0 and state.dead <= d.number) then
      local named = weight > WEIGHT_MAX
      if not named then
        if room == 0 then return found, true end
        room = room - 1
      end
      local fewer = math.max(math.min(d.anchors, state.anchors), 1)
      found[#found + 1] = {number = number, named = named, share = weight % (WEIGHT_MAX + 1) / fewer}
    end
  end
  return found, false
end

local function ranks_before(a, b)
  if a.named ~= b.named then return a.named end
  if a.share ~= b.share then return a.share > b.share end
  return a.number < b.number
end

-- The best living candidates, packed: by weight for each anchor of the document with fewer of them, which has to be
-- enough beyond the first ones; whether the limit left some out.
local function pick(c, d, limit)
  local found, cut = shortlist(c, d, limit)
  table.sort(found, ranks_before)
  local picked, rank = {}, 0
  for i = 1, #found do
    if not found[i].named then rank = rank + 1 end
    if rank > BEST and found[i].share < ENOUGH then break end
    if rank > limit then
      cut = true
      break
    end
    local number = found[i].number
    picked[i] = candidate(c, number, d.seen.counts[number], d.seen.flags[number] or 0)
  end
  if #picked < #found then d.seen.may_change = true end
  return table.concat(picked), cut
end

local function answer(c, d, previous)
  local before, flags, seen = '', COMPLETE, d.seen
  if previous > 0 and read(c, previous).record then
    local bits = bit.bor(seen.flags[previous] or 0, BY_LINEAGE)
    before, flags = candidate(c, previous, seen.counts[previous] or 0, bits), flags + HAS_PREVIOUS
  end
  local candidates, cut = pick(c, d, c.limit)
  if cut then flags = flags + CUT end
  return struct.pack(ANSWER, seen.full, flags) .. before .. candidates
end

-- A kept answer without what was removed or has expired.
local function still_valid(c, kept)
  local full, flags, at = struct.unpack(ANSWER, kept)
  local left = {}
  while at <= #kept do
    local number = struct.unpack('>I5', kept, at)
    local record = read(c, number).record
    if record then
      c.wanted[number] = record
      left[#left + 1] = string.sub(kept, at, at + CANDIDATE_SIZE - 1)
    elseif at == 4 and bit.band(flags, HAS_PREVIOUS) > 0 then
      flags = flags - HAS_PREVIOUS
    end
    at = at + CANDIDATE_SIZE
  end
  return struct.pack(ANSWER, full, flags) .. table.concat(left)
end

local function status(letter, number, rest)
  return letter .. pack5(number) .. (rest or struct.pack(ANSWER, 0, COMPLETE))
end

-- Time ----------------------------------------------------------------------------------------------------

local function clock()
  local now = redis.call('TIME')
  return tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
end

local function mark_at(c, index)
  local ms, number = string.match(redis.call('LINDEX', c.t .. 'g', index) or '', '(%d+):(%d+)')
  return tonumber(ms), tonumber(number)
end

-- The first number that was given within the last `age` ms. What was given between two marks was given within a step
-- after the first.
local function first_within(c, age)
  local latest = c.now - age - math.floor(c.retention / MARKS)
  local low, high = -1, 2 * MARKS
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if (mark_at(c, middle) or c.now) <= latest then low = middle else high = middle end
  end
  if low < 0 then return c.floor end
  local _, number = mark_at(c, high)
  return number or c.last + 1
end

-- Whether more than half of the retention has passed since this number was given.
local function is_aging(c, number)
  if c.retention == 0 then return false end
  c.half = c.half or first_within(c, math.floor(c.retention / 2))
  return number < c.half
end

-- Marks which numbers come from now on; what was given a retention ago falls below the floor.
local function advance(c, now)
  c.now = math.max(now, c.mark)
  if c.retention == 0 then return end
  local step = math.floor(c.retention / MARKS)
  if c.mark < 0 or c.now - c.mark >= step then
    c.mark = c.now
    redis.call('RPUSH', c.t .. 'g', decimal(c.now) .. ':' .. decimal(c.last + 1))
    redis.call('HSET', c.m, 'mark', decimal(c.now))
    if c.kept > 0 then redis.call('ZREMRANGEBYSCORE', c.t .. 's', '-inf', decimal(c.now - c.retention)) end
  end
  while (mark_at(c, 0) or c.now) + step <= c.now - c.retention do
    local _, number = mark_at(c, 1)
    if not number then break end
    c.floor = number
    redis.call('HSET', c.m, 'floor', decimal(number))
    redis.call('LPOP', c.t .. 'g')
  end
  c.states, c.spared = {}, {}
end

-- Admission -----------------------------------------------------------------------------------------------

local function answers_of(c, letter, partition, index)
  return c.t .. letter .. struct.pack('>I2I6', partition, index)
end

local function slot_of(c, letter, d)
  return answers_of(c, letter, d.partition, math.floor(d.offset / ANSWERS)), string.char(d.offset % ANSWERS)
end

-- Moves the checkpoint of a partition. A redelivery begins behind the last commit, however long ago that was, so time
-- counts against the answers to records far before the newest alone.
local function pass(c, d)
  if d.offset <= d.checkpoint then return end
  local before, now = math.floor(d.checkpoint / ANSWERS), math.floor(d.offset / ANSWERS)
  for index = math.max(before - LATEST + 1, 0), math.min(now - LATEST, before) do
    redis.call('PEXPIRE', answers_of(c, 'o', d.partition, index), LATE_MS)
  end
  c.checkpoints[d.partition] = d.offset
end

-- The state that was current when `own` arrived: states that came late never were.
local function previous_of(c, current, own)
  local number = current
  for _ = 1, 2 * WALK do
    local state = read(c, number)
    if not state.record then return 0 end
    if number < own and state.dead ~= number then return number end
    number = state.prev
  end
  return 0
end

-- The answer of then, if this very position made a state that is still kept.
local function replayed(c, d, current)
  local number = current
  for _ = 1, WALK do
    local state = read(c, number)
    if not state.record then return nil end
    if state.partition == d.partition and state.offset == d.offset then
      d.number, d.enters = number, false
      local kept = redis.call('HGET', slot_of(c, 'o', d))
      if kept then return status('r', number, still_valid(c, kept)) end
      gather(c, d)
      return status('r', number, answer(c, d, previous_of(c, current, number)))
    end
    number = state.prev
  end
  return nil
end

local function register(c, d)
  local chunk = c.t .. 'i' .. d.chunk
  local is_new = redis.call('HSET', chunk, string.sub(d.doc, 5), d.entry) == 1
  if is_new and c.floor > 1 and is_swept(d.doc) then sweep(c, false, chunk) end
end

local function take_number(c, d)
  c.last = c.last + 1
  d.number, d.entry = c.last, entry_of(c.last)
end

-- The state that a late one stands behind: the last in the chain that was observed after it.
local function successor(c, d, current)
  local at = current
  for _ = 1, WALK do
    local state = read(c, read(c, at).prev)
    if not state.record or not is_before(d, state) then break end
    at = read(c, at).prev
  end
  return at
end

local function store(c, d, current)
  take_number(c, d)
  local former = current > 0 and read(c, current)
  local behind = former and is_before(d, former) and successor(c, d, current)
  local prev = behind and read(c, behind).prev or current
  local state = parse(struct.pack('>I5I2I6I6c8BI2c9', prev, d.partition, d.offset, d.observed, d.version, d.bands,
    d.anchors, d.doc) .. string.sub(d.blob, ADMISSION_SIZE + 1 + KEY_SIZE * (2 + d.bands + d.anchors)))
  c.states[d.number] = state
  d.enters = not behind
  local seen = gather(c, d)
  local body = answer(c, d, current)
  write_state(c, d.number, behind and superseded(state, d.number) or state.record)
  if seen.may_change and d.position then
    local key, field = slot_of(c, 'o', d)
    redis.call('HSET', key, field, body)
    redis.call('PEXPIRE', key, KEPT_MS)
  end
  if behind then
    link(c, behind, d.number)
  else
    register(c, d)
    if former then bury(c, current, d.number) end
    if seen.some_gone then each_bucket(c, d, clean) end
  end
  return status(former and 'u' or 'n', d.number, body)
end

-- A document seen again late in its life goes on under a new number; no position leads to it, as it has no events.
local function refresh(c, d, current)
  take_number(c, d)
  local keys, slot = homes(c, current)
  local reports = redis.call('HGET', keys[1], string.char(32 + slot))
  local state = parse(struct.pack('>I5I2I6', current, NOWHERE, 0) .. string.sub(read(c, current).record, 14))
  c.states[d.number], d.enters = state, true
  gather(c, d)
  if reports then
    write_state(c, d.number, state.record, string.char(32 + d.number % 16), reports)
  else
    write_state(c, d.number, state.record)
  end
  register(c, d)
  bury(c, current, d.number)
  c.refreshed[d.number] = true
  return d.number
end

local function put(c, d)
  local current = registered(c, d.chunk, d.doc)
  if d.position and (d.offset <= d.checkpoint or c.aborted >= c.floor) then
    local found = replayed(c, d, current)
    if found then return found end
    if d.offset <= d.checkpoint then return status('s', 0) end
  end
  if current > 0 and read(c, current).version == d.version then
    if is_aging(c, current) then current = refresh(c, d, current) end
    local same = candidate(c, current, BAND * d.bands + d.anchors, BY_DIGEST + BY_LINEAGE)
    return status('c', current, struct.pack(ANSWER, 0, COMPLETE + HAS_PREVIOUS) .. same)
  end
  return store(c, d, current)
end

-- Up to MAX_RECORDS states of a document, their event ids added to `ids`; the next state; whether all ids are there.
local function collect(c, current, ids)
  local chain, number, complete = {}, current, true
  local known = {}
  for i = 1, #ids do known[ids[i]] = true end
  while number > 0 and #chain < MAX_RECORDS do
    local state = read(c, number)
    if not state.record then return chain, 0, false end
    local keys, slot = homes(c, number)
    local reports = redis.call('HGET', keys[1], string.char(32 + slot)) or ''
    if #reports >= 17 * REPORTS_CAP or number <= c.rebuilt then complete = false end
    for at = 1, #reports, 17 do
      local id = string.sub(reports, at + 1, at + 16)
      if not known[id] then
        known[id] = true
        ids[#ids + 1] = id
      end
    end
    chain[#chain + 1] = number
    number = state.prev
  end
  if number > 0 and not read(c, number).record then return chain, 0, false end
  return chain, number, complete
end

local function delete_states(c, chain)
  for i = #chain, 1, -1 do
    local keys, slot = homes(c, chain[i])
    for j = 1, #keys do
      redis.call('HDEL', keys[j], string.char(slot), string.char(32 + slot))
    end
    c.states[chain[i]] = {dead = 0}
  end
end

-- The answer to a removal; nil while states are left for another call.
local function remove(c, d)
  local key, field = c.t .. 'd-', d.doc
  if d.position then key, field = slot_of(c, 'd', d) end
  local kept = redis.call('HGET', key, field)
  if d.position and d.offset <= d.checkpoint then
    return kept and status('d', 0, kept) or status('s', 0)
  end
  local current = registered(c, d.chunk, d.doc)
  local ids, flags = {}, COMPLETE
  if kept then
    flags = select(2, struct.unpack(ANSWER, kept))
    for at = 4, #kept, 16 do ids[#ids + 1] = string.sub(kept, at, at + 15) end
  end
  local chain, rest, complete = collect(c, current, ids)
  if not complete then flags = bit.band(flags, FOUND) end
  if current > 0 then flags = bit.bor(flags, FOUND) end
  local body = struct.pack(ANSWER, 0, flags) .. table.concat(ids)
  -- The ids are kept before their sources go, and the chain goes from its end: either survives a failure between.
  redis.call('HSET', key, field, body)
  redis.call('PEXPIRE', key, KEPT_MS)
  delete_states(c, chain)
  if rest > 0 then
    redis.call('HSET', c.t .. 'i' .. d.chunk, string.sub(d.doc, 5), entry_of(rest))
    return nil
  end
  if current > 0 then redis.call('HDEL', c.t .. 'i' .. d.chunk, string.sub(d.doc, 5)) end
  if not d.position then redis.call('HDEL', key, field) end
  return status('d', 0, body)
end

-- Calls ---------------------------------------------------------------------------------------------------

-- What a call knows, or the refusal of an index that is not the caller's. A rebuild shows its lease behind the epoch.
local function begin(m, epoch, cap, limit, retention)
  local got = redis.call('HMGET', m, 'epoch', 'state', 'seq', 'done', 'floor', 'mark', 'aborted', 'chunks_i', 'lease',
    'rebuilt')
  if got[1] ~= string.sub(epoch, 1, 8) then return nil, {'LOST'} end
  if got[2] ~= 'ready' and got[9] ~= string.sub(epoch, 9) then return nil, {'REBUILDING'} end
  cap = tonumber(cap)
  local c = {
    m = m, t = string.sub(m, 1, -2), seq = tonumber(got[3]), last = tonumber(got[4]), floor = tonumber(got[5]),
    mark = tonumber(got[6]), aborted = tonumber(got[7]), registry_chunks = tonumber(got[8]),
    rebuilt = tonumber(got[10] or 0),
    cap = cap, spill = cap - ANCHOR_HEADS, limit = tonumber(limit), retention = tonumber(retention),
    states = {}, wanted = {}, checkpoints = {}, overflows = {}, keys = 0, entries = 0, reads = 0,
    spared = {}, spared_since = -1, refreshed = {},
  }
  c.now, c.kept = c.mark, redis.call('ZCARD', c.t .. 's')
  c.kinds = {
    digest = {letter = 'x', heads = HEADS, cap = BAND_CAP, count = 0, anchors = 0, bits = BY_DIGEST},
    lineage = {letter = 'l', heads = 0, cap = LINEAGE_CAP, count = 0, anchors = 0, bits = BY_LINEAGE},
    band = {letter = 'b', heads = HEADS, cap = BAND_CAP, count = BAND, anchors = BAND_ANCHORS, bits = 0},
    anchor = {letter = 'a', heads = ANCHOR_HEADS, cap = cap, count = 1, anchors = 1, bits = 0, spills = true},
  }
  for _, kind in pairs(c.kinds) do kind.prefix = c.t .. kind.letter end
  return c
end

-- A call was cut off half-way: what it registered stays, with its dead mark; what it did not is taken back.
local function recover(c)
  for number = c.last + 1, c.seq do
    local state = read(c, number)
    if state.record then
      local high = struct.unpack('>I4', state.doc)
      local current = registered(c, struct.pack('>I4', high % c.registry_chunks), state.doc)
      local at = current
      for _ = 1, WALK do
        if at == 0 or at == number then break end
        at = read(c, at).prev or 0
      end
      if at ~= number then
        delete_states(c, {number})
      elseif current == number and read(c, state.prev).record and read(c, state.prev).dead == 0 then
        bury(c, state.prev, number)
      end
    end
  end
  redis.call('HSET', c.m, 'aborted', decimal(c.seq))
  c.aborted, c.last = c.seq, c.seq
end

local function parse_admission(c, blob)
  local d = {blob = blob}
  d.chunk, d.doc, d.flags, d.partition, d.offset, d.previous, d.observed, d.version, d.bands, d.anchors =
    struct.unpack(ADMISSION, blob)
  d.previous = d.previous - 1
  d.position = bit.band(d.flags, HAS_POSITION) > 0
  if d.position then
    if not c.checkpoints[d.partition] then
      c.checkpoints[d.partition] = tonumber(redis.call('HGET', c.m, 'o' .. d.partition) or -1)
    end
    d.checkpoint = c.checkpoints[d.partition]
  end
  return d
end

-- Numbers, packed, then records of the states that an answer names and the caller does not hold.
local function records(c, first)
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

-- Adds what overflowed in this call to the counts by bucket, of which there are so many and one for the rest.
local function count_overflows(c)
  local names, sums, rest = {}, {}, 0
  for bucket in pairs(c.overflows) do names[#names + 1] = bucket end
  if #names == 0 then return end
  local key = c.t .. 'h'
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

local function finish(c)
  local fields = {'seq', decimal(c.last), 'done', decimal(c.last)}
  for partition, offset in pairs(c.checkpoints) do
    fields[#fields + 1] = 'o' .. partition
    fields[#fields + 1] = decimal(offset)
  end
  redis.call('HSET', c.m, unpack(fields))
end

local function admit_one(c, d)
  if bit.band(d.flags, IS_COVER) > 0 then return '' end
  if bit.band(d.flags, IS_REMOVAL) > 0 then return remove(c, d) end
  return put(c, d)
end

-- epoch, bucket cap, candidates, retention in ms, now in ms or '', admissions
-- → OK, answers of the first ones, records | GAP, partition, checkpoint | LOST | REBUILDING
local function admit(keys, args)
  local c, refusal = begin(keys[1], args[1], args[2], args[3], args[4])
  if not c then return refusal end
  if c.last < c.seq then recover(c) end
  advance(c, tonumber(args[5]) or clock())
  redis.call('HSET', c.m, 'seq', decimal(c.last + #args - 5))
  local first, answers, gap = c.last + 1, {}, nil
  for i = 6, #args do
    local d = parse_admission(c, args[i])
    if d.position and d.checkpoint < d.previous then
      gap = {'GAP', d.partition, d.checkpoint}
      break
    end
    local answered = admit_one(c, d)
    if not answered then break end
    answers[#answers + 1] = answered
    if d.position then pass(c, d) end
    if c.keys >= MAX_KEYS or c.entries >= MAX_ENTRIES or c.reads >= MAX_RECORDS then break end
  end
  count_overflows(c)
  finish(c)
  if gap and #answers == 0 then return gap end
  return {'OK', answers, records(c, first)}
end

-- epoch, bucket cap, limit, retention in ms, now in ms or '', keys as an admission → OK, answer, records
local function look_up(keys, args)
  local c, refusal = begin(keys[1], args[1], args[2], args[3], args[4])
  if not c then return refusal end
  local d = parse_admission(c, args[6])
  if c.retention > 0 then
    -- The floor of the last admission may be old.
    c.now = math.max(tonumber(args[5]) or clock(), c.mark)
    c.floor, c.spared_since = math.max(c.floor, first_within(c, c.retention)), c.now - c.retention
  end
  d.number, d.enters = c.seq + 1, false
  gather(c, d)
  local body = answer(c, d, 0)
  return {'OK', status('n', 0, body), records(c, d.number)}
end

local function note(c, number, entry)
  local keys, slot = homes(c, number)
  local field = string.char(32 + slot)
  local reports = redis.call('HGET', keys[1], field) or ''
  if #reports >= 17 * REPORTS_CAP then return end
  for at = 1, #reports, 17 do
    if string.sub(reports, at + 1, at + 16) == string.sub(entry, 2) then return end
  end
  for i = 1, #keys do redis.call('HSET', keys[i], field, reports .. entry) end
end

-- Spares an aging document from the floor for another retention; its keys are not at hand, so it keeps its number.
local function spare(c, number)
  local keys, slot = homes(c, number)
  local own = c.t .. 'k' .. pack5(number)
  if keys[1] ~= own then
    redis.call('DEL', own)
    for _, field in ipairs({string.char(32 + slot), string.char(slot)}) do
      local value = redis.call('HGET', keys[1], field)
      if value then redis.call('HSET', own, field, value) end
    end
  end
  redis.call('PEXPIRE', own, math.floor(c.retention * 1.05) + GROUP_GRACE_MS)
  redis.call('ZADD', c.t .. 's', decimal(c.now), pack5(number))
  if c.kept >= KEPT_CAP then redis.call('ZREMRANGEBYRANK', c.t .. 's', 0, -KEPT_CAP - 1) end
  c.kept, c.spared[number] = c.kept + 1, true
end

-- epoch, retention in ms, pairs: newer, older (5 bytes each), relation (1), event id (16)
-- → OK, a byte '1' or '0' for each
local function report(keys, args)
  local c, refusal = begin(keys[1], args[1], ANCHOR_HEADS, 0, args[2])
  if not c then return refusal end
  local noted = {}
  for i = 3, #args do
    local newer, older, entry = struct.unpack('>I5I5c17', args[i])
    local both = read(c, newer).record and read(c, older).record
    if both then
      note(c, newer, entry)
      note(c, older, entry)
      local first = math.min(newer, older)
      if is_aging(c, first) and read(c, first).dead == 0 then spare(c, first) end
    end
    noted[#noted + 1] = both and '1' or '0'
  end
  return {'OK', table.concat(noted)}
end

-- epoch → OK | LOST | REBUILDING
local function state(keys, args)
  local c, refusal = begin(keys[1], args[1], ANCHOR_HEADS, 0, 0)
  return c and {'OK'} or refusal
end

local function create(m, state_name, epoch, args, first)
  redis.call('HSET', m, 'format', '4', 'state', state_name, 'seq', '0', 'done', '0', 'floor', '1', 'mark', '-1',
    'aborted', '0', unpack(args, first))
  redis.call('HSET', m, 'epoch', epoch)
end

local function facts(m)
  return redis.call('HMGET', m, 'epoch', 'format', 'parts', 'chunks_x', 'chunks_l', 'chunks_b', 'chunks_a', 'chunks_i')
end

-- '1' to create what is missing, a new epoch, name and count of chunks by kind → epoch, format, chunk counts | nothing
local function open(keys, args)
  if redis.call('HEXISTS', keys[1], 'epoch') == 0 then
    if args[1] ~= '1' then return {} end
    create(keys[1], 'ready', args[2], args, 3)
  end
  return facts(keys[1])
end

-- lease (8 bytes), its length in ms, now in ms or '', 'begin', a new epoch, chunk counts → as of open | FILLED | HELD
-- lease, its length in ms, now, 'renew' or 'finish' → OK | HELD
local function rebuild(keys, args)
  local m, lease, step = keys[1], args[1], args[4]
  local got = redis.call('HMGET', m, 'state', 'lease', 'lease_until', 'seq', 'epoch')
  local now = tonumber(args[3]) or clock()
  local is_ours = got[1] == 'rebuilding' and got[2] == lease
  if step ~= 'begin' then
    if got[1] == 'ready' then return {'OK'} end
    if not is_ours then return {'HELD'} end
  end
  if step == 'finish' then
    redis.call('HSET', m, 'rebuilt', got[4], 'state', 'ready')
    return {'OK'}
  end
  if step == 'begin' then
    if got[1] == 'ready' and tonumber(got[4]) > 0 then return {'FILLED'} end
    if got[1] == 'rebuilding' and not is_ours and tonumber(got[3]) > now then return {'HELD'} end
    if got[1] ~= 'rebuilding' or not got[5] then
      for _, letter in ipairs({'m', 'g', 's', 'h'}) do redis.call('DEL', string.sub(m, 1, -2) .. letter) end
      create(m, 'rebuilding', args[5], args, 6)
    end
  end
  redis.call('HSET', m, 'lease', lease, 'lease_until', decimal(now + tonumber(args[2])))
  return step == 'begin' and facts(m) or {'OK'}
end

-- In the hash of schemes: name, value that is expected ('': none), value that follows, … → 1, or 0 if one differs
local function claim(keys, args)
  for i = 1, #args, 3 do
    if (redis.call('HGET', keys[1], args[i]) or '') ~= args[i + 1] then return 0 end
  end
  for i = 1, #args, 3 do redis.call('HSET', keys[1], args[i], args[i + 2]) end
  return 1
end

-- Runs every command that the functions need → commands that are refused, encoding of a hash with an 8 KB value
local function probe(keys)
  local key, refused = string.sub(keys[1], 1, -2) .. '~', {}
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
  try('ZREMRANGEBYSCORE', key, 0, 0)
  try('ZREMRANGEBYRANK', key, 0, 0)
  try('SET', key, 'v', 'PX', 60000)
  try('APPEND', key, 'v')
  try('GETRANGE', key, 0, 0)
  try('PEXPIRE', key, 60000)
  try('DEL', key)
  return {refused, type(encoding) == 'string' and encoding or ''}
end

redis.register_function('nearstream_admit_@@', admit)
redis.register_function('nearstream_report_@@', report)
redis.register_function('nearstream_open_@@', open)
redis.register_function('nearstream_rebuild_@@', rebuild)
redis.register_function('nearstream_claim_@@', claim)
redis.register_function('nearstream_probe_@@', probe)
redis.register_function{function_name = 'nearstream_look_up_@@', callback = look_up, flags = {'no-writes'}}
redis.register_function{function_name = 'nearstream_state_@@', callback = state, flags = {'no-writes'}}
