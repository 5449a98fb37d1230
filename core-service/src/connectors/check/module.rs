//! Whether modules and rpcs make sense, with the requests they make.

use super::Check;
use super::place::Place;
use crate::connectors::failure::FailureRule;
use crate::connectors::field::Field;
use crate::connectors::module::{Module, ModuleType};
use crate::connectors::options::Rpc;
use crate::connectors::pagination::Pagination;
use crate::connectors::request::RequestTemplate;
use crate::connectors::template::Template;
use crate::connectors::trigger::{Poll, Webhook};

impl<'a> Check<'a> {
    pub(super) fn module(&mut self, module: &'a Module) {
        let path = format!("modules.{}", module.id);
        self.fields(&format!("{path}.fields"), &module.fields);
        for field in &module.fields {
            if let Some(rpc) = field.options.as_ref().filter(|rpc| self.app.rpc(rpc).is_none()) {
                let message = format!("{rpc} is no rpc of the app");
                self.report(format!("{path}.fields.{}.options", field.name), message);
            }
        }
        self.kind(&path, module);
        let names = module.fields.iter().map(|field| field.name.as_str());
        let place = Place::of_parameters(names, self.public.clone());
        for (number, guard) in module.refuse.iter().enumerate() {
            self.template(
                &format!("{path}.refuse[{number}].when"),
                Some(&guard.when),
                &place,
            );
        }
        let answered = place.with("response");
        if let Some(request) = &module.request {
            self.request(&format!("{path}.request"), request, &place);
        }
        self.template(&format!("{path}.limit"), module.limit.as_ref(), &place);
        self.template(&format!("{path}.items"), module.items.as_ref(), &answered);
        let output = match &module.webhook {
            Some(_) => place.with("webhook").with("request"),
            None => answered.clone(),
        };
        self.template(&format!("{path}.output"), module.output.as_ref(), &output);
        self.rules(&format!("{path}.errors"), &module.errors, &answered);
        if let Some(pagination) = &module.pagination {
            self.pagination(&format!("{path}.pagination"), pagination, &answered);
        }
        if let Some(poll) = &module.poll {
            self.poll(&format!("{path}.poll"), poll, &place);
        }
        if let Some(webhook) = &module.webhook {
            self.webhook(&format!("{path}.webhook"), webhook, &place.with("webhook"));
        }
    }

    /// That a module says what its type needs, and nothing else.
    fn kind(&mut self, path: &str, module: &Module) {
        let Module {
            request,
            pagination,
            output,
            items,
            limit,
            poll,
            webhook,
            ..
        } = module;
        let is_list = module.module_type == ModuleType::Search || poll.is_some();
        let said = [
            (
                "request",
                request.is_some() || self.app.driver.is_some(),
                Some(webhook.is_none()),
            ),
            (
                "operation",
                module.operation.is_some(),
                self.app.driver.is_some().then_some(true),
            ),
            ("pagination", pagination.is_some(), (!is_list).then_some(false)),
            ("items", items.is_some(), (!is_list).then_some(false)),
            (
                "limit",
                limit.is_some(),
                (module.module_type != ModuleType::Search).then_some(false),
            ),
            ("output", output.is_some(), is_list.then_some(false)),
        ];
        for (name, is_there, wanted) in said {
            match wanted {
                Some(true) if !is_there => self.report(format!("{path}.{name}"), "is required"),
                Some(false) if is_there => {
                    let message = format!(
                        "does not belong to a module of the type {}",
                        module.module_type.as_str()
                    );
                    self.report(format!("{path}.{name}"), message);
                }
                _ => {}
            }
        }
        if module.operation.is_some() && self.app.driver.is_none() {
            self.report(format!("{path}.operation"), "belongs to apps with a driver");
        }
        let starts = usize::from(poll.is_some()) + usize::from(webhook.is_some());
        match (module.module_type, starts) {
            (ModuleType::Trigger, 1) | (ModuleType::Action | ModuleType::Search, 0) => {}
            (ModuleType::Trigger, _) => self.report(path, "a trigger has either poll or webhook"),
            _ => self.report(path, "poll and webhook belong to triggers"),
        }
    }

    pub(super) fn rpc(&mut self, rpc: &'a Rpc) {
        let path = format!("rpcs.{}", rpc.id);
        let is_used = |field: &Field| field.options.as_ref() == Some(&rpc.id);
        let users = self
            .app
            .modules
            .iter()
            .filter(|module| module.fields.iter().any(is_used));
        for (name, module) in users.flat_map(|module| rpc.depends_on.iter().map(move |name| (name, module))) {
            if !module.fields.iter().any(|field| field.name == *name) {
                let message = format!("{name} is no field of the module {}, which asks it", module.id);
                self.report(format!("{path}.dependsOn"), message);
            }
        }
        let place = Place::of_parameters(rpc.depends_on.iter().map(String::as_str), self.public.clone());
        let answered = place.with("response");
        match (&rpc.request, &rpc.operation, &rpc.options.items) {
            (Some(request), None, Some(_)) => self.request(&format!("{path}.request"), request, &place),
            (None, Some(_), None) if self.app.driver.is_some() => {}
            _ if self.app.driver.is_some() => {
                self.report(&path, "has an operation, and neither a request nor items")
            }
            _ => self.report(&path, "has a request and options.items, and no operation"),
        }
        if let Some(pagination) = &rpc.pagination {
            self.pagination(&format!("{path}.pagination"), pagination, &answered);
        }
        self.template(
            &format!("{path}.options.items"),
            rpc.options.items.as_ref(),
            &answered,
        );
        self.template(
            &format!("{path}.options.more"),
            rpc.options.more.as_ref(),
            &answered,
        );
        if rpc.options.more.is_some() && (rpc.pagination.is_some() || rpc.operation.is_some()) {
            let message = "belongs to rpcs with a request and without a pagination, which knows it by itself";
            self.report(format!("{path}.options.more"), message);
        }
        let item = Place::default();
        self.template(&format!("{path}.options.value"), Some(&rpc.options.value), &item);
        self.template(&format!("{path}.options.label"), Some(&rpc.options.label), &item);
    }

    pub(super) fn request(&mut self, path: &str, request: &'a RequestTemplate, place: &Place<'a>) {
        if request.path.is_some() == request.url.is_some() {
            self.report(path, "must have either a path or a url");
        }
        if request.path.is_some() && self.app.base_url.is_none() {
            self.report(format!("{path}.path"), "needs the app's baseUrl");
        }
        if let Some(url) = &request.url {
            self.url(&format!("{path}.url"), url);
        }
        for (name, template) in request.templates() {
            self.template(&format!("{path}.{name}"), Some(template), place);
        }
    }

    fn pagination(&mut self, path: &str, pagination: &'a Pagination, answered: &Place<'a>) {
        if let Some((field, message)) = pagination.problem() {
            self.report(format!("{path}.{field}"), message);
        }
        self.template(&format!("{path}.next"), pagination.next.as_ref(), answered);
        self.template(&format!("{path}.more"), pagination.more.as_ref(), answered);
    }

    fn poll(&mut self, path: &str, poll: &'a Poll, place: &Place<'a>) {
        for (name, template) in poll.templates() {
            self.template(&format!("{path}.{name}"), Some(template), place);
        }
        if poll.limit.is_some() && self.app.driver.is_none() {
            self.report(format!("{path}.limit"), "belongs to apps with a driver");
        }
        if let Some(order) = poll.order.as_ref().filter(|order| order.is_literal()) {
            let message = format!("{} is the same for all items; make it of $item", order.written());
            self.report(format!("{path}.order"), message);
        }
        let fixed = poll.every_seconds.as_ref().and_then(Template::literal_number);
        if fixed.is_some_and(|seconds| !Poll::INTERVALS.contains(&seconds)) {
            let (least, most) = (Poll::INTERVALS.start(), Poll::INTERVALS.end());
            let message = format!("must be from {least} to {most}");
            self.report(format!("{path}.everySeconds"), message);
        }
    }

    fn webhook(&mut self, path: &str, webhook: &'a Webhook, place: &Place<'a>) {
        for (name, request) in webhook.requests() {
            self.request(&format!("{path}.{name}"), request, place);
        }
        if webhook.attach.is_none() && (webhook.keep.is_some() || webhook.detach.is_some()) {
            self.report(path, "keep and detach need attach");
        }
        self.template(
            &format!("{path}.keep"),
            webhook.keep.as_ref(),
            &place.with("response"),
        );
        let delivered = place.with("request");
        self.template(&format!("{path}.accept"), webhook.accept.as_ref(), &delivered);
        self.template(&format!("{path}.key"), webhook.key.as_ref(), &delivered);
        // A signature is checked by what only the connection and the trigger know.
        let mut signed = delivered.clone();
        let fields = self
            .app
            .connections
            .iter()
            .flat_map(|connection| &connection.fields);
        signed.connection.extend(fields.map(|field| field.name.as_str()));
        for (name, template) in webhook.verify.templates() {
            self.template(&format!("{path}.verify.{name}"), Some(template), &signed);
        }
        if let Some(challenge) = &webhook.challenge {
            self.template(
                &format!("{path}.challenge.when"),
                Some(&challenge.when),
                &delivered,
            );
            self.template(
                &format!("{path}.challenge.answer"),
                Some(&challenge.answer),
                &signed,
            );
        }
    }

    pub(super) fn rules(&mut self, path: &str, rules: &'a [FailureRule], place: &Place<'a>) {
        for (number, rule) in rules.iter().enumerate() {
            self.template(&format!("{path}[{number}].when"), Some(&rule.when), place);
            self.template(&format!("{path}[{number}].message"), rule.message.as_ref(), place);
        }
    }
}
