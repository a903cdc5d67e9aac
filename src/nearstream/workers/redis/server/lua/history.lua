-- Whether a state was observed before another. The server compares strings by its locale, so numbers are compared.
local function is_older(one, other)
  local a, b = {struct.unpack(ORDER_FORMAT, one)}, {struct.unpack(ORDER_FORMAT, other)}
  local i = 1
  while i < 5 and a[i] == b[i] do i = i + 1 end
  return a[i] < b[i]
end

-- Return a former state, which only the server knows. The client is asked by an error to declare its keys, so all of an
-- item are read before anything of it is written.
local function read_former(c, number)
  if not c.declared then
    c.declared = {}
    for i = FIRST_KEY, #c.keys do c.declared[c.keys[i]] = true end
  end
  if not c.declared[c.tag .. STATES_KEY .. place(c, number)] then error({undeclared = number}) end
  return read_state(c, number)
end

local function former_of(c, s)
  return s.former > 0 and read_former(c, s.former).packed or ''
end

-- Return an answer, which says what is known of a state, of its former one, and of the document. Of most it is only new.
local function about(m, status, s, former)
  if status == NEW and s.flags == 0 and s.former == 0 and m.label == '' then return NEW end
  return {status, s and s.number or 0, s and s.packed or '', former or '', m.label, m.removal, m.current and 1 or 0}
end

-- Find out what is known of a document: its current state, its label, and its removal within the last hour. Return whether
-- this comes after the record.
local function look(c, m)
  local got = redis.call('HMGET', m.registry, m.document, m.document .. LABEL_FIELD, m.document .. REMOVAL_FIELD)
  local s = got[1] and read_former(c, tonumber(got[1]))
  m.current, m.label, m.removal = s and not s.is_gone and s or nil, got[2] or '', got[3] or ''
  if m.removal ~= '' and struct.unpack('>I6', m.removal) + REMOVAL_MS < c.now then m.removal = '' end
  if m.removal == '' or m.partition == 0 then return false end
  local _, removal = struct.unpack(REMOVAL_FORMAT, m.removal)
  local partition, offset, ms = struct.unpack(SENT_FORMAT, removal)
  local is_of_a_new_topic = ms > 0 and m.sent_ms > ms + CLOCKS_MS
  return partition == m.partition and m.offset <= offset and not is_of_a_new_topic
end

-- Set a field of a document in the registry. Where it is new and something may be over, the hash may be swept.
local function set_and_sweep(c, m, kind, value)
  local is_new = redis.call('HSET', m.registry, m.document .. kind, value) == 1
  if is_new and (c.has_over or c.has_removals) and has_to_sweep(m.document) then sweep_registry(c, m.registry) end
end

-- Return the last state that was observed after this one, and the one that was current then.
local function walk(c, m)
  local behind, s = nil, m.current
  for _ = 1, WALK do
    if not s or s.is_gone then return behind end
    if not is_older(m.order, s.order) then return behind, s end
    behind, s = s, s.before > 0 and read_former(c, s.before)
  end
  return behind
end

local function put(c, m)
  local anchors, record_at, _
  m.order, m.sent_ms, anchors, record_at = struct.unpack(PUT_FORMAT, m.packed, m.at)
  _, m.partition, m.offset = struct.unpack(ORDER_FORMAT, m.order)
  local is_overtaken = look(c, m)
  local s = read_state(c, m.number)
  if s.kind == REPEATS then return about(m, UNCHANGED, read_former(c, struct.unpack('>I5', s.tail))) end
  if s.kind < STUB then return about(m, s.is_gone and OVERTAKEN or KNOWN, s, former_of(c, s)) end
  if is_overtaken then return about(m, OVERTAKEN) end
  local behind, before = walk(c, m)
  local is_again = before and string.sub(before.order, -8) == string.sub(m.order, -8)
  if is_again and m.partition > 0 and before.order == m.order then return about(m, KNOWN, before, former_of(c, before)) end
  s.born, s.order, s.flags = c.now, m.order, s.flags - STUB
  local is_aging = is_again and c.retention > 0 and 2 * (c.now - before.born) >= c.retention
  if is_again and not (is_aging and before.number == m.current.number) then
    s.tail = struct.pack('>I5', before.number)
    write_state(c, s, REPEATS)
    return about(m, UNCHANGED, before)
  end
  s.anchors, s.former, s.before = anchors, m.current and m.current.number or 0, before and before.number or 0
  local key = c.tag .. RECORDS_KEY .. s.group
  redis.call('HSET', key, s.field, string.sub(m.packed, record_at))
  renew(c, key, 1)
  write_state(c, s, behind and LATE)
  if behind then
    behind.before = s.number
    write_state(c, behind)
  else
    set_and_sweep(c, m, '', string.format('%.f', s.number))
    if m.current then write_state(c, m.current, SUPERSEDED) end
  end
  return about(m, is_again and UNCHANGED or NEW, s, m.current and m.current.packed)
end

-- Take the records of all states of a document that came before its removal. Remember those that leave families.
local function remove(c, m)
  local sent = string.sub(m.packed, m.at)
  m.partition, m.offset, m.sent_ms = struct.unpack(SENT_FORMAT, sent)
  local s, is_repeated = read_state(c, m.number), look(c, m)
  if s.kind == REMOVAL then return about(m, REMOVED, s) end
  if is_repeated then return about(m, REMOVED) end
  local removal, chain, last = struct.pack(REMOVAL_FORMAT, c.now, sent), {}, m.current
  while last and last.kind < STUB do
    chain[#chain + 1] = last
    last = last.before > 0 and read_former(c, last.before)
  end
  if m.partition > 0 then
    if not c.has_removals then c.has_removals = redis.call('HSET', c.keys[1], 'removed', 1) end
    set_and_sweep(c, m, REMOVAL_FIELD, removal)
  end
  if m.current and m.current.number < m.number then redis.call('HDEL', m.registry, m.document) end
  s.flags, s.born, s.tail = REMOVAL, c.now, ''
  for _, each in ipairs(chain) do
    if each.number < m.number and not each.is_gone then
      s.flags = bit.bor(s.flags, WAS_KNOWN)
      redis.call('HDEL', c.tag .. RECORDS_KEY .. each.group, each.field)
      write_state(c, each, GONE)
      local leaves = each.founder > 0 and bit.band(each.flags, LATE) == 0
      s.tail = s.tail .. (leaves and struct.pack('>I5I5', each.number, each.founder) or '')
    end
  end
  write_state(c, s)
  return about(m, REMOVED, s)
end

-- An item has the time of the label, then the label. Given again it is no younger, and it is never younger than its arrival.
local function label(c, m)
  m.partition = 0
  look(c, m)
  if m.label == '' or struct.unpack('>I5', m.label) <= m.number then
    local given, at = struct.unpack('>I6', m.packed, m.at)
    local own, known = string.sub(m.packed, at), string.sub(m.label, NUMBER_BYTES + 1)
    given = math.min(given, c.now)
    if own ~= '' and string.sub(known, TIME_BYTES + 1) == own then given = math.min(given, (struct.unpack('>I6', known))) end
    m.label = struct.pack('>I5', m.number) .. (own == '' and '' or struct.pack('>I6', given) .. own)
    redis.call('HSET', m.registry, m.document .. LABEL_FIELD, m.label)
  end
  return about(m, LABELLED, m.current)
end

-- An item is `ITEM_FORMAT`, then what its kind needs. Answer: see `about`, or a state whose keys have to be declared first.
-- Then nothing is done for the item, nor for those of its document that follow.
define('register', true, function(c, item)
  local m, kind, now, chunk = {packed = item}, nil, nil, nil
  kind, m.number, now, chunk, m.document, m.at = struct.unpack(ITEM_FORMAT, item)
  m.registry = c.tag .. REGISTRY_KEY .. chunk
  advance(c, now)
  local left = c.left[m.document]
  if left then return {UNDECLARED, left} end
  local is_done, answer = pcall(kind == PUT_ITEM and put or kind == REMOVAL_ITEM and remove or label, c, m)
  if is_done then return answer end
  if type(answer) ~= 'table' or not answer.undeclared then error(answer, 0) end
  c.left[m.document] = answer.undeclared
  return {UNDECLARED, answer.undeclared}
end)
