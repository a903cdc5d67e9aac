#!lua name=nearstream_@@
-- The index on the server: each call is atomic, the layout is told in workers/redis_index.py.
-- A script error is not rolled back. Hence numbers are reserved first, a state is reached only when its
-- registry entry is written, and checkpoints come last: whatever was cut off is done again.
-- No library (string, struct) may be touched while this file loads; Redis 7.0 lends them to calls only.

local HEADS, BAND_CAP, ANCHOR_HEADS, LINEAGE_CAP = 6, 12, 12, 8
local REPORTS_CAP, WALK, READS, MARKS = 64, 64, 256, 256
local MAX_KEYS, MAX_ENTRIES, MAX_RECORDS = 1024, 16384, 512
local OUTBOX_MS, REMOVALS_MS, GROUP_GRACE_MS = 3600000, 604800000, 3600000
local SPAN = 2 ^ 36 -- live numbers lie closer together than this

-- prev, partition, offset, observed at + 2^46, version, bands, anchors, keyed hash of the document key
local RECORD = '>I5I2I6I6c8BI2c12'
-- registry chunk, hash, flags, partition, offset, previous + 1, observed, version, bands, anchors;
-- then a digest, lineage, bands, anchors: 8 bytes each, chunk and field; then the signature
local ADMISSION = '>c4c12BI2I6I6I6c8BI2'
local ADMISSION_SIZE = 64
local IS_REMOVAL, HAS_POSITION, HAS_LINEAGE = 1, 2, 4
local ANSWER, CANDIDATE, CANDIDATE_SIZE = '>I2B', '>I5BI2B', 9
local CUT, HAS_PREVIOUS, COMPLETE, FOUND = 1, 2, 4, 8
local BY_DIGEST, BY_LINEAGE, IN_FULL = 1, 2, 4

local formats = {}

local function format_of(count)
  formats[count] = formats[count] or '>' .. string.rep('I5', count)
  return formats[count]
end

local function pack5(number)
  return struct.pack('>I5', number)
end

local function unpack_numbers(packed)
  local count = #packed / 5
  local numbers = {struct.unpack(format_of(count), packed)}
  numbers[count + 1] = nil -- the position that struct.unpack adds
  return numbers
end

local function pack_numbers(numbers, first, last)
  return struct.pack(format_of(last - first + 1), unpack(numbers, first, last))
end

-- States --------------------------------------------------------------------------------------------------

local function place(c, number)
  return c.t .. 'r' .. pack5(math.floor(number / 16)), number % 16
end

local function parse(record)
  local state = {record = record, dead = 0}
  state.prev, state.partition, state.offset, state.observed, state.version, state.bands, state.anchors, state.doc =
    struct.unpack(RECORD, record)
  return state
end

-- The state of this number; without a record if it was removed, has expired or never was.
local function read(c, number)
  local state = c.states[number]
  if state then return state end
  state = {dead = 0}
  if number >= c.floor then
    c.reads = c.reads + 1
    local key, slot = place(c, number)
    local got = redis.call('HMGET', key, string.char(slot), string.char(16 + slot))
    if got[1] then state = parse(got[1]) end
    if got[2] then state.dead = struct.unpack('>I5', got[2]) end
  end
  c.states[number] = state
  return state
end

local function write_state(c, number, state)
  local key, slot = place(c, number)
  if state.dead > 0 then
    redis.call('HSET', key, string.char(slot), state.record, string.char(16 + slot), pack5(state.dead))
  else
    redis.call('HSET', key, string.char(slot), state.record)
  end
  if c.retention > 0 and c.renewed ~= key then
    redis.call('PEXPIRE', key, math.floor(c.retention * 1.05) + GROUP_GRACE_MS)
    c.renewed = key
  end
  c.states[number] = state
end

local function bury(c, number, by)
  local key, slot = place(c, number)
  redis.call('HSET', key, string.char(16 + slot), pack5(by))
  read(c, number).dead = by
end

-- Whether a was observed before b; bytes are compared as numbers because Lua compares strings by locale.
local function is_before(a, b)
  if a.observed ~= b.observed then return a.observed < b.observed end
  local a_high, a_low = struct.unpack('>I4I4', a.version)
  local b_high, b_low = struct.unpack('>I4I4', b.version)
  if a_high ~= b_high then return a_high < b_high end
  return a_low < b_low
end

local function registered(c, chunk, doc)
  local packed = redis.call('HGET', c.t .. 'i' .. chunk, string.sub(doc, 5))
  if not packed then return 0 end
  local number = struct.unpack('>I5', packed)
  return read(c, number).doc == doc and number or 0
end

-- Buckets -------------------------------------------------------------------------------------------------

-- Takes what is below the floor out of a chunk.
local function sweep(c, spills, chunk)
  local fields = redis.call('HGETALL', chunk)
  for i = 1, #fields, 2 do
    local field, numbers = fields[i], unpack_numbers(fields[i + 1])
    local count = #numbers
    c.entries = c.entries + count
    -- Behind full heads of an anchor newer numbers may stand: the next admission moves them up.
    if numbers[1] < c.floor and not (spills and count == ANCHOR_HEADS) then
      local first = 1
      while first <= count and numbers[first] < c.floor do first = first + 1 end
      if first > count then
        redis.call('HDEL', chunk, field)
      else
        redis.call('HSET', chunk, field, pack_numbers(numbers, first, count))
      end
    end
  end
end

-- Living entries of a bucket, oldest first, and whether some had expired; nil for no bucket.
local function load(c, kind, chunk, field)
  local packed = redis.call('HGET', kind.prefix .. chunk, field)
  if not packed then return nil end
  if kind.spills and #packed == 5 * ANCHOR_HEADS and c.spill > 0 then
    packed = packed .. redis.call('GETRANGE', c.t .. 'w' .. chunk .. field, -5 * c.spill, -1)
  end
  local entries = unpack_numbers(packed)
  local count = #entries
  c.entries = c.entries + count
  if entries[1] >= c.floor then return entries, false end
  local alive = {}
  for i = 1, count do
    if entries[i] >= c.floor then alive[#alive + 1] = entries[i] end
  end
  return alive, true
end

local function write_spill(c, key, packed)
  if packed == '' then
    redis.call('DEL', key)
  elseif c.retention > 0 then
    redis.call('SET', key, packed, 'PX', c.retention)
  else
    redis.call('SET', key, packed)
  end
end

-- The place of the entry that a full lineage bucket drops: a removed state, else the longest not observed.
local function oldest(c, entries, own, observed)
  local least, at
  for i = 1, #entries do
    local age = entries[i] == own and observed or read(c, entries[i]).observed or -1
    if not least or age < least then least, at = age, i end
  end
  return at
end

local function add_anchor(c, bucket, entries, expired, own)
  local spill = c.t .. 'w' .. bucket.chunk .. bucket.field
  if not expired and #entries >= ANCHOR_HEADS then
    if c.spill == 0 then return end
    if redis.call('APPEND', spill, pack5(own)) > 10 * c.spill then
      write_spill(c, spill, redis.call('GETRANGE', spill, -5 * c.spill, -1))
    elseif c.retention > 0 then
      redis.call('PEXPIRE', spill, c.retention)
    end
    return
  end
  entries[#entries + 1] = own
  local heads = math.min(#entries, ANCHOR_HEADS)
  if expired then
    write_spill(c, spill, #entries > heads and pack_numbers(entries, heads + 1, #entries) or '')
  end
  redis.call('HSET', c.t .. 'a' .. bucket.chunk, bucket.field, pack_numbers(entries, 1, heads))
end

local function add(c, kind, chunk, field, entries, d)
  entries[#entries + 1] = d.number
  if #entries > kind.cap then
    table.remove(entries, kind.heads > 0 and kind.heads + 1 or oldest(c, entries, d.number, d.observed))
  end
  redis.call('HSET', kind.prefix .. chunk, field, pack_numbers(entries, 1, #entries))
end

local function tally(seen, entries, own, kind)
  local below = #entries
  while below > 0 and entries[below] >= own do below = below - 1 end
  local full = below >= kind.cap
  if full then seen.full = seen.full + 1 end
  if below > kind.heads then seen.beyond = true end
  local bits = kind.bits + (full and IN_FULL or 0)
  local counts, flags = seen.counts, seen.flags
  for i = 1, below do
    local number = entries[i]
    counts[number] = (counts[number] or 0) + kind.weight
    if bits > 0 then flags[number] = bit.bor(flags[number] or 0, bits) end
  end
end

local function visit(c, seen, d, kind, at)
  local chunk, field = string.sub(d.blob, at, at + 3), string.sub(d.blob, at + 4, at + 7)
  if d.enters and redis.call('HSETNX', kind.prefix .. chunk, field, d.packed) == 1 then
    if c.floor > 1 and string.byte(field, 4) % 16 == 0 then sweep(c, kind.spills, kind.prefix .. chunk) end
    return
  end
  local entries, expired = load(c, kind, chunk, field)
  if not entries then return end
  tally(seen, entries, d.number, kind)
  if not d.enters then return end
  if kind.spills then
    add_anchor(c, {chunk = chunk, field = field}, entries, expired, d.number)
  else
    add(c, kind, chunk, field, entries, d)
  end
end

-- What the buckets held as of d.number; with d.enters the number is added to them.
local function gather(c, d)
  local seen = {counts = {}, flags = {}, full = 0, beyond = false}
  local band, anchor, at = c.kinds.band, c.kinds.anchor, ADMISSION_SIZE + 1
  c.keys = c.keys + 2 + d.bands + d.anchors
  visit(c, seen, d, c.kinds.digest, ADMISSION_SIZE - 15)
  if bit.band(d.flags, HAS_LINEAGE) > 0 then visit(c, seen, d, c.kinds.lineage, ADMISSION_SIZE - 7) end
  for _ = 1, d.bands do
    visit(c, seen, d, band, at)
    at = at + 8
  end
  for _ = 1, d.anchors do
    visit(c, seen, d, anchor, at)
    at = at + 8
  end
  return seen
end

-- Answers -------------------------------------------------------------------------------------------------

local function candidate(c, number, count, flags)
  c.wanted[number] = read(c, number).record
  return struct.pack(CANDIDATE, number, math.floor(count / 65536), count % 65536, flags)
end

-- The best living candidates, packed; whether the limit, or the bound of reading, left some out.
local function pick(c, seen, own, doc, limit)
  local order, picked = {}, {}
  for number, count in pairs(seen.counts) do
    local score = math.min(4 * math.floor(count / 65536) + count % 65536, 65535)
    if bit.band(seen.flags[number] or 0, BY_DIGEST + BY_LINEAGE) > 0 then score = score + 65536 end
    order[#order + 1] = score * SPAN + own - number
  end
  table.sort(order)
  local reads, room = 0, limit
  for i = #order, 1, -1 do
    if reads == READS then return table.concat(picked), true end
    reads = reads + 1
    local number = own - order[i] % SPAN
    local state, flags = read(c, number), seen.flags[number] or 0
    if state.record and state.doc ~= doc and not (state.dead > 0 and state.dead <= own) then
      if order[i] < 65536 * SPAN then room = room - 1 end
      if room < 0 then return table.concat(picked), true end
      picked[#picked + 1] = candidate(c, number, seen.counts[number], flags)
    end
  end
  return table.concat(picked), false
end

local function answer(c, d, previous, seen)
  local before, flags = '', COMPLETE
  if previous > 0 and read(c, previous).record then
    local bits = bit.bor(seen.flags[previous] or 0, BY_LINEAGE)
    before, flags = candidate(c, previous, seen.counts[previous] or 0, bits), flags + HAS_PREVIOUS
  end
  local candidates, cut = pick(c, seen, d.number, d.doc, c.limit)
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

-- Admission -----------------------------------------------------------------------------------------------

local function slot_of(c, letter, d)
  local key = c.t .. letter .. struct.pack('>I2I6', d.partition, math.floor(d.offset / 256))
  return key, string.char(d.offset % 256)
end

-- The state that the last one of chain followed on its arrival. A late one stands behind the state that
-- it followed; any other skips late ones.
local function previous_of(c, chain)
  local number = chain[#chain]
  local state = read(c, number)
  if state.dead == number then
    for i = #chain - 1, 1, -1 do
      if read(c, chain[i]).dead ~= chain[i] then return chain[i] end
    end
    return 0
  end
  for _ = 1, WALK do
    number = state.prev
    state = read(c, number)
    if not state.record then return 0 end
    if state.dead ~= number then return number end
  end
  return 0
end

local function replay(c, d, chain)
  d.number, d.enters = chain[#chain], false
  local kept = redis.call('HGET', slot_of(c, 'o', d))
  if kept then return status('r', d.number, still_valid(c, kept)) end
  return status('r', d.number, answer(c, d, previous_of(c, chain), gather(c, d)))
end

-- The answer of then, if this very position made a state that is still kept.
local function replayed(c, d, current)
  local chain, number = {}, current
  while number > 0 and #chain < WALK do
    local state = read(c, number)
    if not state.record then return nil end
    chain[#chain + 1] = number
    if state.partition == d.partition and state.offset == d.offset then return replay(c, d, chain) end
    number = state.prev
  end
  return nil
end

local function register(c, d)
  local chunk = c.t .. 'i' .. d.chunk
  local is_new = redis.call('HSET', chunk, string.sub(d.doc, 5), d.packed) == 1
  if is_new and c.floor > 1 and string.byte(d.doc, 12) % 16 == 0 then sweep(c, false, chunk) end
end

local function store(c, d, current)
  c.last = c.last + 1
  d.number, d.packed = c.last, pack5(c.last)
  local former = current > 0 and read(c, current)
  local late = former and is_before(d, former)
  d.enters = not late
  local seen = gather(c, d)
  local body = answer(c, d, current, seen)
  local payload = string.sub(d.blob, ADMISSION_SIZE + 1 + 8 * (d.bands + d.anchors))
  local prev = late and former.prev or current
  local state = parse(struct.pack(RECORD, prev, d.partition, d.offset, d.observed, d.version, d.bands, d.anchors, d.doc)
    .. payload)
  if late then state.dead = d.number end
  write_state(c, d.number, state)
  if seen.beyond and d.position then
    local key, field = slot_of(c, 'o', d)
    redis.call('HSET', key, field, body)
    redis.call('PEXPIRE', key, OUTBOX_MS)
  end
  if late then
    local moved = parse(d.packed .. string.sub(former.record, 6))
    moved.dead = former.dead
    write_state(c, current, moved)
  else
    register(c, d)
    if former then bury(c, current, d.number) end
  end
  return status(former and 'u' or 'n', d.number, body)
end

local function put(c, d)
  local current = registered(c, d.chunk, d.doc)
  if d.position and (d.offset <= d.checkpoint or c.aborted >= c.floor) then
    local found = replayed(c, d, current)
    if found then return found end
    if d.offset <= d.checkpoint then return status('s', 0) end
  end
  if current > 0 and read(c, current).version == d.version then
    local same = candidate(c, current, 65536 * d.bands + d.anchors, BY_DIGEST + BY_LINEAGE)
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
    if not state.record then break end
    local key, slot = place(c, number)
    local reports = redis.call('HGET', key, string.char(32 + slot)) or ''
    if #reports >= 17 * REPORTS_CAP then complete = false end
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
  redis.call('PEXPIRE', key, REMOVALS_MS)
  for i = #chain, 1, -1 do
    local group, slot = place(c, chain[i])
    redis.call('HDEL', group, string.char(slot), string.char(16 + slot), string.char(32 + slot))
    c.states[chain[i]] = {dead = 0}
  end
  if rest > 0 then
    redis.call('HSET', c.t .. 'i' .. d.chunk, string.sub(d.doc, 5), pack5(rest))
    return nil
  end
  if current > 0 then redis.call('HDEL', c.t .. 'i' .. d.chunk, string.sub(d.doc, 5)) end
  if not d.position then redis.call('HDEL', key, field) end
  return status('d', 0, body)
end

-- Calls ---------------------------------------------------------------------------------------------------

local function clock()
  local now = redis.call('TIME')
  return tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
end

-- What a call knows, or the refusal of an index that is not the caller's.
local function begin(m, epoch, cap, limit)
  local got = redis.call('HMGET', m, 'epoch', 'state', 'seq', 'done', 'floor', 'mark', 'aborted', 'chunks_i')
  if got[1] ~= epoch then return nil, {'LOST'} end
  if got[2] ~= 'ready' then return nil, {'REBUILDING'} end
  cap = tonumber(cap)
  local c = {
    m = m, t = string.sub(m, 1, -2), seq = tonumber(got[3]), last = tonumber(got[4]), floor = tonumber(got[5]),
    mark = tonumber(got[6]), aborted = tonumber(got[7]), registry_chunks = tonumber(got[8]),
    cap = cap, spill = cap - ANCHOR_HEADS, limit = tonumber(limit), retention = 0,
    states = {}, wanted = {}, checkpoints = {}, keys = 0, entries = 0, reads = 0,
  }
  c.kinds = {
    digest = {prefix = c.t .. 'x', heads = HEADS, cap = BAND_CAP, weight = 0, bits = BY_DIGEST},
    lineage = {prefix = c.t .. 'l', heads = 0, cap = LINEAGE_CAP, weight = 0, bits = BY_LINEAGE},
    band = {prefix = c.t .. 'b', heads = HEADS, cap = BAND_CAP, weight = 65536, bits = 0},
    anchor = {prefix = c.t .. 'a', heads = ANCHOR_HEADS, cap = cap, weight = 1, bits = 0, spills = true},
  }
  return c
end

local function mark_at(c, index)
  local ms, number = string.match(redis.call('LINDEX', c.t .. 'g', index) or '', '(%d+):(%d+)')
  return tonumber(ms), number
end

-- Marks which numbers come from now on; what was given a retention ago falls below the floor.
local function advance(c, now)
  if c.retention == 0 then return end
  local step = math.floor(c.retention / MARKS)
  now = math.max(now, c.mark)
  if c.mark < 0 or now - c.mark >= step then
    redis.call('RPUSH', c.t .. 'g', string.format('%.0f:%.0f', now, c.last + 1))
    redis.call('HSET', c.m, 'mark', string.format('%.0f', now))
  end
  -- What was given between two marks was given within a step after the first.
  while (mark_at(c, 0) or now) + step <= now - c.retention do
    local _, number = mark_at(c, 1)
    if not number then return end
    c.floor = tonumber(number)
    redis.call('HSET', c.m, 'floor', number)
    redis.call('LPOP', c.t .. 'g')
  end
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
      local key, slot = place(c, number)
      if at ~= number then
        redis.call('HDEL', key, string.char(slot), string.char(16 + slot))
        c.states[number] = {dead = 0}
      elseif current == number and read(c, state.prev).record and read(c, state.prev).dead == 0 then
        bury(c, state.prev, number)
      end
    end
  end
  redis.call('HSET', c.m, 'aborted', string.format('%.0f', c.seq))
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

-- Numbers and records of the states that an answer names and the caller does not hold.
local function records(c, first)
  local list = {}
  for number, record in pairs(c.wanted) do
    if number < first then list[#list + 1] = pack5(number) .. record end
  end
  return list
end

local function finish(c)
  local fields = {'seq', string.format('%.0f', c.last), 'done', string.format('%.0f', c.last)}
  for partition, offset in pairs(c.checkpoints) do
    fields[#fields + 1] = 'o' .. partition
    fields[#fields + 1] = string.format('%.0f', offset)
  end
  redis.call('HSET', c.m, unpack(fields))
end

-- epoch, bucket cap, candidates, retention in ms, now in ms or '', admissions
-- → OK, answers of the first ones, records | GAP, partition, checkpoint | LOST | REBUILDING
local function admit(keys, args)
  local c, refusal = begin(keys[1], args[1], args[2], args[3])
  if not c then return refusal end
  c.retention = tonumber(args[4])
  if c.last < c.seq then recover(c) end
  advance(c, tonumber(args[5]) or clock())
  redis.call('HSET', c.m, 'seq', string.format('%.0f', c.last + #args - 5))
  local first, answers, gap = c.last + 1, {}, nil
  for i = 6, #args do
    local d = parse_admission(c, args[i])
    if d.position and d.checkpoint < d.previous then
      gap = {'GAP', d.partition, d.checkpoint}
      break
    end
    local answered
    if bit.band(d.flags, IS_REMOVAL) > 0 then answered = remove(c, d) else answered = put(c, d) end
    if not answered then break end
    answers[#answers + 1] = answered
    if d.position then c.checkpoints[d.partition] = math.max(d.checkpoint, d.offset) end
    if c.keys >= MAX_KEYS or c.entries >= MAX_ENTRIES or c.reads >= MAX_RECORDS then break end
  end
  finish(c)
  if gap and #answers == 0 then return gap end
  return {'OK', answers, records(c, first)}
end

-- epoch, bucket cap, limit, keys as an admission → OK, answer, records
local function look_up(keys, args)
  local c, refusal = begin(keys[1], args[1], args[2], args[3])
  if not c then return refusal end
  local d = parse_admission(c, args[4])
  d.number, d.enters = c.seq + 1, false
  local body = answer(c, d, 0, gather(c, d))
  return {'OK', status('n', 0, body), records(c, d.number)}
end

local function note(c, number, entry)
  local key, slot = place(c, number)
  local field = string.char(32 + slot)
  local reports = redis.call('HGET', key, field) or ''
  if #reports >= 17 * REPORTS_CAP then return end
  for at = 1, #reports, 17 do
    if string.sub(reports, at + 1, at + 16) == string.sub(entry, 2) then return end
  end
  redis.call('HSET', key, field, reports .. entry)
end

local function is_kept(c, number)
  if number < c.floor then return false end
  local key, slot = place(c, number)
  return redis.call('HEXISTS', key, string.char(slot)) == 1
end

-- epoch, pairs: newer, older (5 bytes each), relation (1), event id (16) → OK, a byte '1' or '0' for each
local function report(keys, args)
  local c, refusal = begin(keys[1], args[1], ANCHOR_HEADS, 0)
  if not c then return refusal end
  local noted = {}
  for i = 2, #args do
    local newer, older, entry = struct.unpack('>I5I5c17', args[i])
    local both = is_kept(c, newer) and is_kept(c, older)
    if both then
      note(c, newer, entry)
      note(c, older, entry)
    end
    noted[#noted + 1] = both and '1' or '0'
  end
  return {'OK', table.concat(noted)}
end

-- epoch → OK | LOST | REBUILDING
local function state(keys, args)
  local c, refusal = begin(keys[1], args[1], ANCHOR_HEADS, 0)
  return c and {'OK'} or refusal
end

-- '1' to create what is missing, a new epoch, name and count of chunks by kind → epoch, format, chunk counts | nothing
local function open(keys, args)
  local m = keys[1]
  if redis.call('HEXISTS', m, 'epoch') == 0 then
    if args[1] ~= '1' then return {} end
    redis.call('HSET', m, 'format', '1', 'state', 'ready', 'seq', '0', 'done', '0', 'floor', '1', 'mark', '-1',
      'aborted', '0', unpack(args, 3))
    redis.call('HSET', m, 'epoch', args[2])
  end
  return redis.call('HMGET', m, 'epoch', 'format', 'chunks_x', 'chunks_l', 'chunks_b', 'chunks_a', 'chunks_i')
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
  try('HDEL', key, 'f', 'g')
  try('RPUSH', key, 'v')
  try('LINDEX', key, 0)
  try('LPOP', key)
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
redis.register_function('nearstream_probe_@@', probe)
redis.register_function{function_name = 'nearstream_look_up_@@', callback = look_up, flags = {'no-writes'}}
redis.register_function{function_name = 'nearstream_state_@@', callback = state, flags = {'no-writes'}}
