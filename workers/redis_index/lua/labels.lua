
-- The index functions, fourth part: labels. It follows families.lua.
--
-- A label is stored under its document, whether or not that is in the index, so the records of both may come in any
-- order. A family has a hash of its labelled documents, with the label and the number of the state that is in the family.
-- A state that is no longer the current one of its document stays in it and is passed over.

local function labelled_key(c, family)
  return c.tag .. LABELLED_KEY .. pack_number(family)
end

-- Return kind, weight, time and offset of the label of a document. The kind is nil without a label.
local function read_label(c, doc)
  local packed = redis.call('GETRANGE', c.tag .. LABELS_KEY .. doc, 0, -1)
  if packed == '' then return nil end
  return struct.unpack(LABEL_FORMAT, packed)
end

-- Whether a state is the current one of a document. The record need not be read for that, which would take far longer.
local function is_current(c, number, doc)
  if not is_visible(c, number) then return false end
  local chunk = struct.pack('>I4', (struct.unpack('>I4', doc)) % c.registry_chunks)
  local packed = redis.call('HGET', c.tag .. REGISTRY_KEY .. chunk, registry_field(doc))
  return packed and unpack_numbers(packed)[1] == number
end

-- Put a document among the labelled ones of a family. In a full hash it takes the place of those that do not count.
local function note(c, family, doc, labelled)
  local key = labelled_key(c, family)
  if redis.call('HLEN', key) >= LABELS_CAP and redis.call('HEXISTS', key, doc) == 0 then
    local known, room = redis.call('HGETALL', key), false
    for i = 1, #known, 2 do
      if not is_current(c, struct.unpack(LABELLED_FORMAT, known[i + 1]), known[i]) then
        redis.call('HDEL', key, known[i])
        room = true
      end
    end
    if not room then return end
  end
  redis.call('HSET', key, doc, labelled)
  if c.retention > 0 then redis.call('PEXPIRE', key, lifetime(c)) end
end

-- Note the document of a state as a labelled one of the family that the state is in now, if it has a label. A state that
-- is no longer current is left out, because its successor may be noted in the same family.
function families.note_label(c, number)
  local doc = c.has_labels and lives(c, number) and read_state(c, number).doc
  if not doc then return end
  local kind, weight, at = read_label(c, doc)
  if kind and kind ~= LABEL_NONE then
    note(c, families.of(c, number), doc, struct.pack(LABELLED_FORMAT, number, kind, weight, at))
  end
end

-- Forget that the document of a state is a labelled one of a family.
function families.forget_label(c, family, number)
  local doc = c.has_labels and lives(c, number) and read_state(c, number).doc
  if doc then redis.call('HDEL', labelled_key(c, family), doc) end
end

-- Note the labelled documents of a family that joins another one as a whole.
function families.bring_labels(c, family, joining)
  if not c.has_labels then return end
  local key = labelled_key(c, joining)
  local known = redis.call('HGETALL', key)
  for i = 1, #known, 2 do note(c, family, known[i], known[i + 1]) end
  redis.call('DEL', key)
end

-- Set or take back the label of a document, unless a later record has done so.
function families.put_label(c, d)
  local kind, weight, at = struct.unpack(LABEL_FORMAT, d.blob, ADMISSION_SIZE + 1 + 2 * KEY_SIZE)
  local known, known_weight, known_at, offset = read_label(c, d.doc)
  if known and d.position and d.offset < offset then return end
  at = math.min(at, math.max(c.now, 0))
  if known == kind and known_weight == weight then at = math.min(at, known_at) end
  local key = c.tag .. LABELS_KEY .. d.doc
  redis.call('SET', key, struct.pack(LABEL_FORMAT, kind, weight, at, d.offset))
  if kind == LABEL_NONE then
    redis.call('PEXPIRE', key, ANSWERS_MS)
  elseif c.retention > 0 then
    redis.call('PEXPIRE', key, lifetime(c))
  end
  redis.call('HSET', c.facts, 'labels', '1')
  c.has_labels = true
  local number = current_number(c, d.chunk, d.doc)
  if number > 0 and kind == LABEL_NONE then families.forget_label(c, families.of(c, number), number) end
  if number > 0 then families.note_label(c, number) end
end

-- Return the sums of the weights of the labels in a family that were given up to a time: of spam, and of ham.
function families.count_labels(c, family, before)
  local known, sums = redis.call('HGETALL', labelled_key(c, family)), {[LABEL_SPAM] = 0, [LABEL_HAM] = 0}
  for i = 1, #known, 2 do
    local number, kind, weight, at = struct.unpack(LABELLED_FORMAT, known[i + 1])
    if at <= before and is_current(c, number, known[i]) then sums[kind] = sums[kind] + weight end
  end
  return sums[LABEL_SPAM], sums[LABEL_HAM]
end
