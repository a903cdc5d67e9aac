-- NEARSTREAM_BULK: many copies of the message arrived within the last hour. The option of the symbol says how many.
-- NEARSTREAM_KNOWN_BAD, NEARSTREAM_KNOWN_GOOD: it is a copy of mail that was labelled as spam, or as ham. The option says
-- with which weight.
-- NEARSTREAM_OTHER_ATTACHMENTS: it is a copy of another message by its text, and has other attachments.
-- NEARSTREAM_CONTAINS_BULK: it is no copy, but contains a text of which many copies arrived within the last day. The
-- option says how many.
local rspamd_http = require 'rspamd_http'
local rspamd_logger = require 'rspamd_logger'
local ucl = require 'ucl'

local url = 'http://127.0.0.1:9465/v1/check'
local headers = { ['nearstream-collection'] = 'default' } -- and, with a token, Authorization = 'Bearer ...'

local function insert(task, answer)
  local labels = type(answer.labels) == 'table' and answer.labels or {}
  if answer.verdict == 'bulk' and tonumber(answer.score) then
    task:insert_result('NEARSTREAM_BULK', tonumber(answer.score), tostring(answer.count_1h))
  elseif answer.verdict == 'known_bad' then
    task:insert_result('NEARSTREAM_KNOWN_BAD', 1.0, tostring(labels.spam))
  elseif answer.verdict == 'known_good' then
    task:insert_result('NEARSTREAM_KNOWN_GOOD', 1.0, tostring(labels.ham))
  end
  local contained = type(answer.contains) == 'table' and tonumber(answer.contains.count_24h)
  if contained then task:insert_result('NEARSTREAM_CONTAINS_BULK', 1.0, tostring(answer.contains.count_24h)) end
  for _, reason in ipairs(type(answer.low_confidence) == 'table' and answer.low_confidence or {}) do
    if reason == 'attachments_differ' then task:insert_result('NEARSTREAM_OTHER_ATTACHMENTS', 1.0) end
  end
end

local id = rspamd_config:register_symbol({
  name = 'NEARSTREAM_BULK', group = 'nearstream', score = 3.0, description = 'Many copies within the last hour',
  callback = function(task)
    local function answered(failure, code, body)
      if failure or code ~= 200 then
        rspamd_logger.infox(task, 'no answer from nearstream: %s', failure or code)
        return
      end
      local parser = ucl.parser()
      local answer = parser:parse_text(body) and parser:get_object()
      if type(answer) == 'table' then insert(task, answer) end
    end
    rspamd_http.request({ task = task, url = url, body = task:get_content(), mime_type = 'message/rfc822',
      headers = headers, timeout = 0.5, callback = answered })
  end,
})
rspamd_config:register_symbol({ name = 'NEARSTREAM_KNOWN_BAD', type = 'virtual', parent = id, group = 'nearstream',
  score = 6.0, description = 'A copy of mail that was labelled as spam' })
rspamd_config:register_symbol({ name = 'NEARSTREAM_KNOWN_GOOD', type = 'virtual', parent = id, group = 'nearstream',
  score = -3.0, description = 'A copy of mail that was labelled as ham' })
rspamd_config:register_symbol({ name = 'NEARSTREAM_CONTAINS_BULK', type = 'virtual', parent = id, group = 'nearstream',
  score = 1.5, description = 'A text with many copies lies in other words' })
rspamd_config:register_symbol({ name = 'NEARSTREAM_OTHER_ATTACHMENTS', type = 'virtual', parent = id,
  group = 'nearstream', score = 0.0, description = 'A copy of other mail, with other attachments' })
