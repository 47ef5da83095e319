"""edit.py FOLDER: changes QuickJS's source where its messages and traces differ from those that programs written for Node expect."""
import sys

path = sys.argv[1] + "/quickjs.c"
text = open(path).read()


def change(old, new, count=1):
    global text
    if text.count(old) < count:
        sys.exit(f"edit.py: not in {path}: {old}")
    text = text.replace(old, new)


for what in ("null", "undefined"):
    change(f"\"cannot read property '%s' of {what}\"", f"\"Cannot read properties of {what} (reading '%s')\"", 2)
    change(f"\"cannot set property '%s' of {what}\"", f"\"Cannot set properties of {what} (setting '%s')\"")
change('"%s is not initialized"', '"Cannot access \'%s\' before initialization"')
change("\"'%s' is read-only\"", "\"Cannot assign to read only property '%s' of object\"")
change("JS_ThrowTypeErrorReadOnly(ctx, JS_PROP_THROW, atom);", "JS_ThrowTypeError(ctx, \"Assignment to constant variable.\");")
change('"invalid array length"', '"Invalid array length"', 2)
change('"value is not iterable"', '"object is not iterable (cannot read property Symbol(Symbol.iterator))"')
change("\"class constructors must be invoked with 'new'\"", "\"Class constructor cannot be invoked without 'new'\"")
change('"cannot convert to object"', '"Cannot convert undefined or null to object"')
change('"BigInt are forbidden in JSON.stringify"', '"Do not know how to serialize a BigInt"')
change('"cannot convert symbol to string"', '"Cannot convert a Symbol value to a string"')

change('"object is not extensible"', '"Cannot add property, object is not extensible"', 4)
change("read only property '%s' of object", "read only property '%s' of object '#<Object>'")
change('JS_ThrowTypeError(ctx, "empty array")', 'JS_ThrowTypeError(ctx, "Reduce of empty array with no initial value")')
change('"invalid repeat count"', '"Invalid count value"')
change('"invalid number of digits"', '"toFixed() digits argument must be between 0 and 100"', 3)
change('"cannot convert BigInt to number"', '"Cannot mix BigInt and other types, use explicit conversions"')
change('"cannot convert to BigInt: not an integer"', '"The number cannot be converted to a BigInt because it is not an integer"')
change("""        return js_parse_error(s, "unexpected token in expression: '%.*s'",
                              (int)(s->buf_ptr - s->token.ptr), s->token.ptr);
""", """        return agentrun_unexpected(s);
""")
change("""js_parse_error(s, "expecting '%c'", ';')""", "agentrun_unexpected(s)")
change("""js_parse_error(s, "expecting '%c'", '}')""", "agentrun_unexpected(s)")
change("""static int js_parse_expect_semi(JSParseState *s)
{""", """static int agentrun_unexpected(JSParseState *s);

static int js_parse_expect_semi(JSParseState *s)
{""")
change("""static int js_parse_error_reserved_identifier(JSParseState *s)
{""", """// agentrun_unexpected names the token that can't be where it is.
static int agentrun_unexpected(JSParseState *s)
{
    int n = s->buf_ptr - s->token.ptr;
    switch (s->token.val) {
    case TOK_EOF:
        return js_parse_error(s, "Unexpected end of input");
    case TOK_NUMBER:
        return js_parse_error(s, "Unexpected number");
    case TOK_STRING:
        return js_parse_error(s, "Unexpected string");
    case TOK_TEMPLATE:
        return js_parse_error(s, "Unexpected template string");
    case TOK_IDENT:
        return js_parse_error(s, "Unexpected identifier '%.*s'", n, s->token.ptr);
    }
    return js_parse_error(s, "Unexpected token '%.*s'", n, s->token.ptr);
}

static int js_parse_error_reserved_identifier(JSParseState *s)
{""")
change('"unexpected end of string"', '"Invalid or unexpected token"', 2)
change('"invalid redefinition of lexical identifier"', '"Identifier has already been declared"', 2)
change('"invalid redefinition of a variable"', '"Identifier has already been declared"')
change('"%s in JSON at position %d (line %d column %d)"', '"%s in JSON at position %d"')
change('JS_ThrowTypeError(ctx, "circular reference")', 'JS_ThrowTypeError(ctx, "Converting circular structure to JSON")')
for what in ("null", "undefined"):
    change(f"""JS_ThrowTypeErrorAtom(ctx, "Cannot read properties of {what} (reading '%s')", prop)""",
           f"""(prop == JS_ATOM_Symbol_iterator ? JS_ThrowTypeError(ctx, "{what} is not iterable (cannot read property Symbol(Symbol.iterator))") : """
           f"""JS_ThrowTypeErrorAtom(ctx, "Cannot read properties of {what} (reading '%s')", prop))""")
change("""    return JS_ThrowReferenceError(ctx, "Cannot access '%s' before initialization",
""", """    if (name == JS_ATOM_this)
        return JS_ThrowReferenceError(ctx, "Must call super constructor in derived class before accessing 'this' or returning from derived constructor");
    return JS_ThrowReferenceError(ctx, "Cannot access '%s' before initialization",
""")
change("""    return JS_ThrowTypeError(ctx, "not a function");
}

static JSValue JS_ThrowTypeErrorNotAnObject""", """    return agentrun_throw_not(ctx, "a function");
}

static JSValue JS_ThrowTypeErrorNotAnObject""")
change("""fini:
    return JS_ThrowTypeError(ctx, "not a constructor");""", """fini:
    return agentrun_throw_not(ctx, "a constructor");""")
change("""            js_parse_error(s, "unexpected token: '%.*s'",
                           (int)(s->buf_ptr - s->token.ptr), s->token.ptr);
""", """            agentrun_json_error(s);
""")
change("""static int json_parse_string(JSParseState *s, const uint8_t **pp)
{""", """// agentrun_json_error names a character that JSON can't have there, and shows what is around it.
static void agentrun_json_error(JSParseState *s)
{
    const uint8_t *at = s->token.ptr, *from = s->buf_start, *to = s->buf_end;
    const char *before = "", *after = "";
    int n = 1;
    while (n < 4 && at + n < to && (at[n] & 0xc0) == 0x80)
        n++;
    if (to - from > 40) {
        if (at - from > 10) {
            from = at - 10;
            before = "...";
        }
        if (to - at > 10) {
            to = at + 10;
            after = "...";
        }
        while (from < at && (*from & 0xc0) == 0x80)
            from++;
        while (to > at && to < s->buf_end && (*to & 0xc0) == 0x80)
            to--;
    }
    js_parse_error(s, "Unexpected token '%.*s', %s\\"%.*s\\"%s is not valid JSON", n, at, before, (int)(to - from), from, after);
}

static int json_parse_string(JSParseState *s, const uint8_t **pp)
{""")
change('"expecting hex digit"', '"URI malformed"')
change("""        return JS_UNDEFINED;
    return js_dup(p->u.object_data);
""", """        return JS_UNDEFINED;
    if (JS_IsString(p->u.object_data)) {
        size_t len;
        const char *text = JS_ToCStringLen(ctx, &len, p->u.object_data);
        if (!text)
            return JS_EXCEPTION;
        if (len > 0 && text[0] == 1) {
            JSValue head = agentrun_error_head(ctx, this_val), stack;
            if (len == 1) { // no frames: no newline either
                size_t n;
                const char *h = JS_ToCStringLen(ctx, &n, head);
                stack = h ? JS_NewStringLen(ctx, h, n > 0 ? n - 1 : 0) : JS_EXCEPTION;
                JS_FreeCString(ctx, h);
                JS_FreeValue(ctx, head);
            } else
                stack = JS_ConcatString(ctx, head, JS_NewStringLen(ctx, text + 1, len - 1));
            JS_FreeCString(ctx, text);
            if (JS_IsException(stack))
                return stack;
            JS_FreeValue(ctx, p->u.object_data);
            p->u.object_data = stack;
            return js_dup(stack);
        }
        JS_FreeCString(ctx, text);
    }
    return js_dup(p->u.object_data);
""")
change("""    if (!JS_IsString(value))
        return JS_ThrowTypeError(ctx, "Error.prototype.stack setter expects a string");
""", "")
change("\"Could not find export '%s' in module '%s'\"", "\"The requested module '%2$s' does not provide an export named '%1$s'\"")
# Frames as V8 words them.
change("""            if (!func_name_str || func_name_str[0] == '\\0')
                str1 = "<anonymous>";
            else
                str1 = func_name_str;
            dbuf_printf(&dbuf, "    at %s", str1);
            JS_FreeCString(ctx, func_name_str);
""", """            bool named = func_name_str && func_name_str[0] != '\\0';
            str1 = named ? func_name_str : b ? "" : "<anonymous>";
            dbuf_printf(&dbuf, "    at %s", str1);
            JS_FreeCString(ctx, func_name_str);
""")
change("""dbuf_printf(&dbuf, " (%s", atom_str ? atom_str : "<null>");""", """dbuf_printf(&dbuf, named ? " (%s" : "%s", atom_str ? atom_str : "<null>");""")
change("""                    dbuf_printf(&dbuf, ":%d:%d", line_num1, col_num1);
                dbuf_putc(&dbuf, ')');""", """                    dbuf_printf(&dbuf, ":%d:%d", line_num1, col_num1);
                if (named)
                    dbuf_putc(&dbuf, ')');""")
change("""dbuf_printf(&dbuf, " (native)");""", """dbuf_printf(&dbuf, " (<anonymous>)");""")
change("""static void build_backtrace(JSContext *ctx, JSValueConst error_val,
                            JSValueConst filter_func, const char *filename,
                            int line_num, int col_num, int backtrace_flags)
{
""", """// agentrun_callee finds the text of the expression that is being called, from the source of the function that calls. It is empty when unsure.
static void agentrun_callee(JSContext *ctx, char *out, int cap)
{
    JSStackFrame *sf = ctx->rt->current_stack_frame;
    JSFunctionBytecode *b;
    JSObject *p;
    int line, col, at, start, end, depth, isnew = 0;
    const char *s;
    out[0] = 0;
    if (!sf || !sf->cur_pc)
        return;
    p = JS_VALUE_GET_OBJ(sf->cur_func);
    if (!js_class_has_bytecode(p->class_id))
        return;
    b = p->u.func.function_bytecode;
    if (!b->source || b->source_len <= 0)
        return;
    line = find_line_num(ctx, b, sf->cur_pc - b->byte_code_buf - 1, &col);
    s = b->source;
    at = 0;
    if (line == b->line_num)
        at = col - b->col_num;
    else {
        for (int n = line - b->line_num; n > 0; n--) {
            while (at < b->source_len && s[at] != '\\n')
                at++;
            at++;
        }
        at += col - 1;
    }
    if (at < 0 || at >= b->source_len)
        return;
#define IDENT(c) (((c) >= 'a' && (c) <= 'z') || ((c) >= 'A' && (c) <= 'Z') || ((c) >= '0' && (c) <= '9') || (c) == '_' || (c) == '$' || (c) == '#' || (c) & 0x80)
    if (b->source_len - at > 4 && !strncmp(s + at, "new ", 4)) {
        at += 4;
        isnew = 1;
    }
    end = at;
    if (end < b->source_len && s[end] == '.')
        end++;
    while (end < b->source_len && (IDENT(s[end]) || (isnew && s[end] == '.')))
        end++;
    while (end < b->source_len && s[end] == '[') { // o['a'](
        for (depth = 0; end < b->source_len; end++) {
            depth += s[end] == '[' ? 1 : s[end] == ']' ? -1 : 0;
            if (depth == 0) {
                end++;
                break;
            }
        }
    }
    start = at;
    for (;;) {
        while (start > 0 && IDENT(s[start - 1]))
            start--;
        if (start > 1 && s[start - 1] == '.' && s[start - 2] == '?')
            start -= 2;
        else if (start > 0 && s[start - 1] == '.')
            start--;
        else
            break;
        while (start > 0 && (s[start - 1] == ' ' || s[start - 1] == '\\n' || s[start - 1] == '\\t'))
            start--;
        while (start > 0 && (s[start - 1] == ')' || s[start - 1] == ']')) {
            depth = 0;
            do {
                start--;
                depth += s[start] == ')' || s[start] == ']' ? 1 : s[start] == '(' || s[start] == '[' ? -1 : 0;
            } while (start > 0 && depth > 0);
        }
    }
    if (end <= start)
        return;
    int n = 0, quiet = 0;
    for (int i = start; i < end && n < cap - 8; i++) {
        if (s[i] == '(' && quiet++ == 0)
            n += snprintf(out + n, cap - n, "(...)");
        if (!quiet && s[i] != '\\n' && s[i] != ' ' && s[i] != '\\t')
            out[n++] = s[i];
        if (s[i] == ')')
            quiet--;
    }
    out[n] = 0;
    if (!strncmp(out, "return", 6) || n == 0 || (out[0] >= '0' && out[0] <= '9') || out[0] == '.')
        out[0] = 0;
}

static JSValue agentrun_throw_not(JSContext *ctx, const char *what)
{
    char text[256];
    agentrun_callee(ctx, text, sizeof text);
    if (!text[0])
        return JS_ThrowTypeError(ctx, "not %s", what);
    return JS_ThrowTypeError(ctx, "%s is not %s", text, what);
}

static void build_backtrace(JSContext *ctx, JSValueConst error_val,
                            JSValueConst filter_func, const char *filename,
                            int line_num, int col_num, int backtrace_flags)
{
""")

# The stack of an error begins with what the error is, as V8's does.
change("""        if (dbuf_error(&dbuf))
            stack = JS_NULL;
        else
            stack = JS_NewStringLen(ctx, (char *)dbuf.buf, dbuf.size);
        dbuf_free(&dbuf);
""", """        if (dbuf.size > 0 && dbuf.buf[dbuf.size - 1] == '\\n')
            dbuf.size--;
        stack = JS_NULL;
        if (!dbuf_error(&dbuf)) {
            // The first line is added when somebody first looks, as V8 does: until then the name and the message may change.
            JSValue head = !has_filter_func && can_store_error_stack(error_obj) ? JS_NewString(ctx, "\\x01") : agentrun_error_head(ctx, error_obj);
            JSValue tail = JS_NewStringLen(ctx, (char *)dbuf.buf, dbuf.size);
            if (dbuf.size > 0)
                stack = JS_ConcatString(ctx, head, tail);
            else {
                stack = head;
                JS_FreeValue(ctx, tail);
            }
            if (JS_IsException(stack)) {
                JS_FreeValue(ctx, JS_GetException(ctx));
                stack = JS_NULL;
            }
        }
        dbuf_free(&dbuf);
""")
change("""static void build_backtrace(JSContext *ctx, JSValueConst error_val,
                            JSValueConst filter_func, const char *filename,
                            int line_num, int col_num, int backtrace_flags)
{
""", """// agentrun_error_head returns "Name: message", with a newline if there are frames to follow; a pending exception stays.
static JSValue agentrun_error_head(JSContext *ctx, JSValueConst error)
{
    JSValue saved = JS_GetException(ctx), part;
    DynBuf d;
    const char *name = NULL, *message = NULL;
    js_dbuf_init(ctx, &d);
    part = JS_GetPropertyStr(ctx, error, "name");
    if (JS_IsString(part))
        name = JS_ToCString(ctx, part);
    JS_FreeValue(ctx, part);
    part = JS_GetPropertyStr(ctx, error, "message");
    if (JS_IsString(part))
        message = JS_ToCString(ctx, part);
    JS_FreeValue(ctx, part);
    dbuf_putstr(&d, name ? name : "Error");
    if (message && *message) {
        if (!name || *name)
            dbuf_putstr(&d, ": ");
        dbuf_putstr(&d, message);
    }
    dbuf_putc(&d, '\\n');
    JS_FreeCString(ctx, name);
    JS_FreeCString(ctx, message);
    part = JS_NewStringLen(ctx, (char *)d.buf, d.size);
    dbuf_free(&d);
    JS_FreeValue(ctx, JS_GetException(ctx));
    JS_Throw(ctx, saved);
    return part;
}

static void build_backtrace(JSContext *ctx, JSValueConst error_val,
                            JSValueConst filter_func, const char *filename,
                            int line_num, int col_num, int backtrace_flags)
{
""")
text += """
// agentrun_entries returns what an iterator of a Map or Set has left, without taking it: [kind, key, value, …]; kind is 0 keys, 1 values, 2 both.
JSValue agentrun_entries(JSContext *ctx, JSValueConst v)
{
    JSObject *p;
    JSMapIteratorData *it;
    JSMapState *s;
    struct list_head *el;
    JSValue list;
    uint32_t n = 0;
    if (JS_VALUE_GET_TAG(v) != JS_TAG_OBJECT)
        return JS_UNDEFINED;
    p = JS_VALUE_GET_OBJ(v);
    if (p->class_id != JS_CLASS_MAP_ITERATOR && p->class_id != JS_CLASS_SET_ITERATOR)
        return JS_UNDEFINED;
    list = JS_NewArray(ctx);
    it = p->u.map_iterator_data;
    if (!it || JS_IsUndefined(it->obj))
        return list;
    JS_SetPropertyUint32(ctx, list, n++, JS_NewInt32(ctx, it->kind));
    s = JS_VALUE_GET_OBJ(it->obj)->u.map_state;
    for (el = it->cur_record ? it->cur_record->link.next : s->records.next; el != &s->records; el = el->next) {
        JSMapRecord *mr = list_entry(el, JSMapRecord, link);
        if (mr->empty)
            continue;
        JS_SetPropertyUint32(ctx, list, n++, JS_DupValue(ctx, mr->key));
        JS_SetPropertyUint32(ctx, list, n++, JS_DupValue(ctx, mr->value));
    }
    return list;
}

// agentrun_seed begins Math.random anew, in a copy of an interpreter.
void agentrun_seed(JSContext *ctx, uint64_t seed)
{
    ctx->random_state = seed | 1;
}
"""
open(path, "w").write(text)
