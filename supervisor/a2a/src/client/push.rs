//! Push configurations.

use super::response::acknowledged;
use super::{A2aClient, ClientError};
use crate::model::{
    DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    TaskPushNotificationConfig,
};
use crate::v03;
use crate::version::ProtocolVersion;

/// Most pages that are read of one task's configurations.
const MOST_PAGES: usize = 100;

/// Push configurations. Agents without push notifications respond with -32003.
impl A2aClient {
    /// Registers a configuration, so that the agent posts the updates of a task to its URL. Returns the configuration with
    /// its id.
    pub async fn create_push_config(
        &self,
        task: &str,
        mut config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, ClientError> {
        let agreed = self.agreed();
        config.task_id = Some(task.to_owned());
        agreed.fill_tenant(&mut config.tenant);
        let new = ("CreateTaskPushNotificationConfig", &config);
        let old = ("tasks/pushNotificationConfig/set", &v03::TaskPushConfig::from(config.clone()));
        self.call_in_version::<_, v03::TaskPushConfig>(&agreed, new, old).await
    }

    /// One configuration of a task.
    pub async fn push_config(&self, task: &str, id: &str) -> Result<TaskPushNotificationConfig, ClientError> {
        let agreed = self.agreed();
        let (tenant, task_id) = (agreed.tenant.clone(), task.to_owned());
        let request = GetTaskPushNotificationConfigRequest { tenant, task_id, id: id.to_owned() };
        let new = ("GetTaskPushNotificationConfig", &request);
        let old = ("tasks/pushNotificationConfig/get", &old_params(task, id));
        self.call_in_version::<_, v03::TaskPushConfig>(&agreed, new, old).await
    }

    /// All configurations of a task, page by page up to 100.
    pub async fn push_configs(&self, task: &str) -> Result<Vec<TaskPushNotificationConfig>, ClientError> {
        let (agreed, limit) = (self.agreed(), self.inner.options.timeout);
        if agreed.version == ProtocolVersion::V0_3 {
            let params = v03::TaskIdParams { id: task.to_owned(), metadata: None };
            let method = "tasks/pushNotificationConfig/list";
            let configs: Vec<v03::TaskPushConfig> = self.call(&agreed, method, &params, limit).await?;
            return Ok(configs.into_iter().map(Into::into).collect());
        }
        let (tenant, task_id) = (agreed.tenant.clone(), task.to_owned());
        let mut request = ListTaskPushNotificationConfigsRequest { tenant, task_id, ..Default::default() };
        let mut configs = Vec::new();
        for _ in 0..MOST_PAGES {
            let method = "ListTaskPushNotificationConfigs";
            let page: ListTaskPushNotificationConfigsResponse =
                self.call(&agreed, method, &request, limit).await?;
            configs.extend(page.configs);
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = Some(page.next_page_token);
        }
        Ok(configs)
    }

    /// Deletes a configuration. In 1.0 it is no error if the configuration does not exist.
    pub async fn delete_push_config(&self, task: &str, id: &str) -> Result<(), ClientError> {
        let (agreed, limit) = (self.agreed(), self.inner.options.timeout);
        let read = |body: &bytes::Bytes| acknowledged(body);
        match agreed.version {
            ProtocolVersion::V1_0 => {
                let (tenant, task_id, id) = (agreed.tenant.clone(), task.to_owned(), id.to_owned());
                let request = DeleteTaskPushNotificationConfigRequest { tenant, task_id, id };
                self.answer(&agreed, "DeleteTaskPushNotificationConfig", &request, limit, read).await
            }
            ProtocolVersion::V0_3 => {
                let (method, params) = ("tasks/pushNotificationConfig/delete", old_params(task, id));
                self.answer(&agreed, method, &params, limit, read).await
            }
        }
    }
}

fn old_params(task: &str, id: &str) -> v03::PushConfigParams {
    v03::PushConfigParams {
        id: task.to_owned(),
        push_notification_config_id: Some(id.to_owned()),
        metadata: None,
    }
}
