-- Functions of one key that is not of an index.

-- Change entries of a hash, unless one of them was changed meanwhile. Arguments for each: name, expected value ('': none), new
-- value. Reply: 1 | 0, if an entry has another value.
redis.register_function('nearstream_store_claim_@@', function(keys, args)
  for i = 1, #args, 3 do
    if (redis.call('HGET', keys[1], args[i]) or '') ~= args[i + 1] then return 0 end
  end
  for i = 1, #args, 3 do redis.call('HSET', keys[1], args[i], args[i + 2]) end
  return 1
end)

-- Try every command that the functions need. Reply: those that the server refuses, encoding of a hash with a value of 8 KB.
redis.register_function('nearstream_store_probe_@@', function(keys)
  local key, refused = keys[1], {}
  local function try(...)
    local reply = redis.pcall(...)
    if type(reply) == 'table' and reply.err then refused[#refused + 1] = string.lower((...)) end
    return reply
  end
  try('TIME')
  try('DEL', key)
  try('HSET', key, 'f', string.rep('v', 8192))
  local encoding = try('OBJECT', 'ENCODING', key)
  for _, name in ipairs({'HGETALL', 'HKEYS', 'HLEN'}) do try(name, key) end
  try('HSETNX', key, 'f', 'v')
  for _, name in ipairs({'HGET', 'HMGET', 'HEXISTS', 'HDEL'}) do try(name, key, 'f') end
  try('ZADD', key, 1, 'v')
  for _, name in ipairs({'ZSCORE', 'ZREM'}) do try(name, key, 'v') end
  for _, name in ipairs({'ZCOUNT', 'ZRANGEBYSCORE', 'ZREVRANGEBYSCORE', 'ZREMRANGEBYRANK'}) do try(name, key, 0, 0) end
  try('SET', key, 'v', 'PX', 60000)
  try('GET', key)
  try('PEXPIRE', key, 60000)
  try('DEL', key)
  return {refused, type(encoding) == 'string' and encoding or ''}
end)
