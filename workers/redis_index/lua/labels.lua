
-- The index functions, third part: labels. It follows families.lua.
--
-- A label is stored under its document, whether or not that is in the index, so the records of both may come in any
-- order. A family has a hash of its labelled documents. A document stays in it when it leaves the family, or loses its
-- label, and is passed over then.

local function labelled_key(c, family)
  return c.tag .. LABELLED_KEY .. pack_number(family)
end

-- Return kind, weight, time and offset of the label of a document. The kind is nil without a label.
local function read_label(c, doc)
  local packed = redis.call('GETRANGE', c.tag .. LABELS_KEY .. doc, 0, -1)
  if packed == '' then return nil end
  return struct.unpack(LABEL_FORMAT, packed)
end

-- Return kind, weight and time of the label of a document if that is in a family now, else nil.
local function label_in(c, family, doc)
  local chunk = struct.pack('>I4', (struct.unpack('>I4', doc)) % c.registry_chunks)
  local number = current_number(c, chunk, doc)
  if not lives(c, number) or families.of(c, number) ~= family then return nil end
  local kind, weight, at = read_label(c, doc)
  if kind == LABEL_NONE then return nil end
  return kind, weight, at
end

-- Add a document to the labelled ones of a family. In a full hash it takes the place of those that do not count.
local function note(c, family, doc)
  local key = labelled_key(c, family)
  if redis.call('HLEN', key) >= LABELS_CAP and redis.call('HEXISTS', key, doc) == 0 then
    local known, room = redis.call('HGETALL', key), false
    for i = 1, #known, 2 do
      if not label_in(c, family, known[i]) then
        redis.call('HDEL', key, known[i])
        room = true
      end
    end
    if not room then return end
  end
  redis.call('HSET', key, doc, '1')
  if c.retention > 0 then redis.call('PEXPIRE', key, lifetime(c)) end
end

-- Note the document of a state as a labelled one of the family that the state is in now, if it has a label.
function families.note_label(c, number)
  local doc = c.has_labels and read_state(c, number).doc
  if doc and (read_label(c, doc) or LABEL_NONE) ~= LABEL_NONE then note(c, families.of(c, number), doc) end
end

-- Note the labelled documents of a family that joins another one as a whole.
function families.bring_labels(c, family, joining)
  if not c.has_labels then return end
  local key = labelled_key(c, joining)
  local known = redis.call('HGETALL', key)
  for i = 1, #known, 2 do note(c, family, known[i]) end
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
  if number > 0 then families.note_label(c, number) end
end

-- Return the sums of the weights of the labels in a family that were given up to a time: of spam, and of ham.
function families.count_labels(c, family, before)
  local known, sums = redis.call('HGETALL', labelled_key(c, family)), {[LABEL_SPAM] = 0, [LABEL_HAM] = 0}
  for i = 1, #known, 2 do
    local kind, weight, at = label_in(c, family, known[i])
    if kind and at <= before then sums[kind] = sums[kind] + weight end
  end
  return sums[LABEL_SPAM], sums[LABEL_HAM]
end
